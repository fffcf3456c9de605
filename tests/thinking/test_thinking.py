"""Thinking over HTTP, streamed and plain."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from hookline import Job, hookimpl
from hookline.engines.scripted import EOS

THOUGHT = ("<thi", "nk>", "\nHm", ", yes.", "\n</th", "ink>", "\n\n", "It", " is", ".")
OPENED = THOUGHT[2:]
both_paths = pytest.mark.parametrize("stream", [False, True])


@both_paths
@pytest.mark.parametrize("lines", [THOUGHT, OPENED], ids=["opens", "opened"])
async def test_the_thought_and_the_answer(thinker: Any, lines: Any, stream: bool) -> None:
    async with thinker(*lines) as model:
        answer = await model.ask(enable_thinking=True, stream=stream)
    assert (answer.reasoning, answer.content, answer.finish) == ("Hm, yes.", "It is.", "stop")
    assert answer.thought_tokens == lines.index("ink>") + 1
    assert answer.usage["completion_tokens"] == len(lines) + 1


@both_paths
async def test_off_there_is_no_thought_and_no_tag(thinker: Any, stream: bool) -> None:
    for fields in (
        {},
        {"enable_thinking": False},
        {"enable_thinking": None},
        {"reasoning_effort": "low"},
        {"enable_thinking": True, "reasoning_effort": "none"},
        {"enable_thinking": True, "thinking_budget": 0},
        {"chat_template_kwargs": {"enable_thinking": False}},
    ):
        async with thinker(*THOUGHT) as model:
            answer = await model.ask(stream=stream, **fields)
        assert (answer.reasoning, answer.content) == (None, "It is."), fields
        assert model.model.prompts[0].endswith("<think>\n\n</think>\n\n"), fields


async def test_both_names_turn_it_on(thinker: Any) -> None:
    async with thinker(*OPENED) as model:
        for fields in (
            {"enable_thinking": True},
            {"chat_template_kwargs": {"enable_thinking": True}},
        ):
            assert (await model.ask(**fields)).reasoning == "Hm, yes."
            assert model.model.prompts[-1].endswith("assistant\n<think>\n")


async def test_names_that_contradict_each_other(thinker: Any) -> None:
    async with thinker(*OPENED) as model:
        kwargs = {"chat_template_kwargs": {"enable_thinking": True}}
        error = await model.refusal(enable_thinking=False, **kwargs)
        assert error["param"] == "enable_thinking"
        error = await model.refusal(chat_template_kwargs={"enable_thinking": "yes"})
        assert error["param"] == "chat_template_kwargs.enable_thinking"


@pytest.mark.parametrize(
    ("field", "value"),
    [("enable_thinking", "yes"), ("reasoning_effort", "huge"), ("thinking_budget", -1)],
)
async def test_wrong_values_name_their_field(thinker: Any, field: str, value: Any) -> None:
    async with thinker(*OPENED) as model:
        assert (await model.refusal(**{field: value}))["param"] == field


@both_paths
async def test_a_limit_inside_the_thought(thinker: Any, stream: bool) -> None:
    async with thinker(*OPENED) as model:
        for limit in range(1, OPENED.index("ink>")):
            answer = await model.ask(enable_thinking=True, max_tokens=limit, stream=stream)
            assert (answer.content, answer.finish) == ("", "length")
            assert "Hm, yes.".startswith(answer.reasoning)
            assert answer.thought_tokens == limit


@both_paths
async def test_stops_look_at_the_answer_only(thinker: Any, stream: bool) -> None:
    async with thinker("I stop", " here.", "</think>", "Yes", " stop", " no") as model:
        answer = await model.ask(enable_thinking=True, stop=" stop", stream=stream)
    assert (answer.reasoning, answer.content) == ("I stop here.", "Yes")
    assert answer.finish == "stop"


@both_paths
async def test_logprobs_are_those_of_the_answer(thinker: Any, stream: bool) -> None:
    for fields in ({"enable_thinking": True}, {}):
        async with thinker(*THOUGHT) as model:
            answer = await model.ask(logprobs=True, stream=stream, **fields)
        assert answer.logprobs == ["It", " is", "."]


@both_paths
async def test_every_choice_thinks_for_itself(thinker: Any, stream: bool) -> None:
    async with thinker(*OPENED) as model:
        answers = await model.ask_all(enable_thinking=True, n=3, stream=stream)
    assert [(a.reasoning, a.content) for a in answers] == [("Hm, yes.", "It is.")] * 3
    assert answers[0].thought_tokens == 3 * (OPENED.index("ink>") + 1)


# Budgets


@both_paths
async def test_a_spent_budget_closes_the_thought(thinker: Any, stream: bool) -> None:
    lines = ("One", " two", " three", " four", *["ignored"] * 30, "Done", ".")
    async with thinker(*lines[:34], *lines[34:], closing=" Enough.") as model:
        forced = len(" Enough.</think>\n\n")
        model.model.lines = (*lines[:3], *["x"] * forced, "Done", ".")
        answer = await model.ask(enable_thinking=True, thinking_budget=3, stream=stream)
    assert (answer.reasoning, answer.content) == ("One two three Enough.", "Done.")
    assert answer.finish == "stop"


@pytest.mark.parametrize("effort", ["low", "medium", "high", None])
async def test_an_effort_is_a_budget(thinker: Any, effort: str | None) -> None:
    budgets = {"low": 2, "medium": 3, "high": 5}
    async with thinker(*["a"] * 5, *["x"] * 40, budgets=budgets) as model:
        answer = await model.ask(enable_thinking=True, reasoning_effort=effort)
    assert answer.reasoning == "a" * budgets[effort or "high"]


async def test_a_budget_cuts_no_character(thinker: Any) -> None:
    first, second = "é".encode()[:1], "é".encode()[1:]
    async with thinker("a", first, second, *["x"] * 10, "Done") as model:
        answer = await model.ask(enable_thinking=True, thinking_budget=2)
    assert (answer.reasoning, answer.content) == ("aé", "Done")


async def test_the_model_cannot_end_its_answer_inside_the_thought(thinker: Any) -> None:
    async with thinker("Hm") as model:
        answer = await model.ask(enable_thinking=True, max_tokens=4)
        (job,) = model.model.jobs
        assert job.opening is not None
        mask = job.opening.start().mask()
    assert mask is not None
    assert (mask[EOS], int(mask.sum())) == (False, len(mask) - 1)
    assert answer.finish == "length"


# What constrains the answer


class Digits:
    """A plugin whose constraint allows one digit and then the end."""

    @hookimpl
    async def shape_job(self, job: Job) -> None:
        job.grammar = self

    def start(self) -> OneDigit:
        return OneDigit()


class OneDigit:
    def __init__(self) -> None:
        self.is_done = False

    def mask(self) -> Any:
        allowed = np.zeros(4096, np.bool_)
        allowed[ord("0") : ord("9") + 1] = True
        return allowed

    def accept(self, token: int) -> None:
        assert chr(token).isdigit()
        self.is_done = True


@both_paths
async def test_a_constraint_begins_after_the_thought(thinker: Any, stream: bool) -> None:
    lines = ("Seven", " or 8?", "</think>", "7", "8")
    for name in ("a-before", "z-after"):
        async with thinker(*lines, plugins={name: Digits()}) as model:
            answer = await model.ask(enable_thinking=True, stream=stream)
        assert (answer.reasoning, answer.content) == ("Seven or 8?", "7")


async def test_a_constraint_begins_after_a_thought_that_was_cut_short(thinker: Any) -> None:
    async with thinker(*["Seven"] * 11, "0", plugins={"digits": Digits()}) as model:
        answer = await model.ask(enable_thinking=True, thinking_budget=1)
    assert (answer.reasoning, answer.content) == ("Seven", "0")


async def test_without_a_thought_a_constraint_begins_at_once(thinker: Any) -> None:
    async with thinker("<think>", "7", plugins={"digits": Digits()}) as model:
        assert (await model.ask()).content == "0"


# Conversations


async def test_earlier_thoughts_reach_only_templates_that_want_them(thinker: Any) -> None:
    history = [
        {"role": "user", "content": "One?"},
        {"role": "assistant", "content": "1", "reasoning_content": "I count."},
        {"role": "user", "content": "Two?"},
    ]
    for template, wanted in (
        (TEMPLATE_OF_NAMES, False),
        (None, False),
        (TEMPLATE_WITH_THOUGHTS, True),
    ):
        async with thinker("2", template=template, force=True) as model:
            await model.ask(messages=history)
        assert ("I count." in model.model.prompts[0]) is wanted


TEMPLATE_OF_NAMES = "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}<think>\n"
TEMPLATE_WITH_THOUGHTS = (
    "{% for m in messages %}{{ m.reasoning_content }}{{ m.content }}{% endfor %}"
)


@both_paths
async def test_tags_that_a_client_typed_are_text(thinker: Any, stream: bool) -> None:
    said = "Say <think>x</think> twice"
    async with thinker("Sure: ", "<think>", "x", "</think>", "!") as model:
        answer = await model.ask(said, stream=stream)
        assert (answer.reasoning, answer.content) == (None, "Sure: <think>x</think>!")
        thought = await model.ask(said, enable_thinking=True, stream=stream)
    assert (thought.reasoning, thought.content) == ("Sure: <think>x", "!")
    assert said in model.model.prompts[0]


# Models


async def test_a_template_that_always_opens_the_thought(thinker: Any) -> None:
    async with thinker(*OPENED, template=TEMPLATE_OF_NAMES) as model:
        answer = await model.ask(enable_thinking=True)
        assert (answer.reasoning, answer.content) == ("Hm, yes.", "It is.")
        assert model.model.prompts[-1].endswith("Hi\n<think>")
        model.model.lines = ("It", " is.")
        answer = await model.ask()
        assert (answer.reasoning, answer.content) == (None, "It is.")
        assert model.model.prompts[-1].endswith("Hi\n<think>\n</think>\n\n")


async def test_a_model_that_cannot_think(thinker: Any) -> None:
    async with thinker("Hello", template=None) as model:
        error = await model.refusal(enable_thinking=True)
        assert "force = true" in error["message"]
        assert error["param"] == "enable_thinking"
        assert (await model.ask()).content == "Hello"
        assert "think" not in model.model.prompts[0]


@both_paths
async def test_a_model_that_is_made_to_think(thinker: Any, stream: bool) -> None:
    async with thinker(*OPENED, template=None, force=True) as model:
        messages = [{"role": "developer", "content": "Be kind."}, {"role": "user", "content": "Hi"}]
        answer = await model.ask(messages=messages, enable_thinking=True, stream=stream)
        await model.ask(enable_thinking=True)
        await model.ask()
    assert (answer.reasoning, answer.content) == ("Hm, yes.", "It is.")
    told, alone, off = model.model.prompts
    assert "Be kind.\n\nThink step by step" in told
    assert "End your thoughts with </think>," in told
    assert told.endswith("assistant\n<think>\n")
    assert alone.startswith("<s><|im_start|>system\nThink step")
    assert "think" not in off.lower()


async def test_tags_of_a_model(thinker: Any) -> None:
    own = {"scripted": {"begin": "[[", "end": "]]"}}
    async with thinker("Hm", "]", "]", "Yes", template=None, models=own) as model:
        answer = await model.ask(enable_thinking=True)
        assert (answer.reasoning, answer.content) == ("Hm", "Yes")
        assert model.model.prompts[0].endswith("assistant\n[[\n")
    template = "{{ messages[0].content }}[THINK]{# and [/THINK] #}"
    async with thinker("Hm", "[/THINK]", "Yes", template=template) as model:
        assert (await model.ask(enable_thinking=True)).reasoning == "Hm"
    async with thinker("Hm</think>Yes", opened=True) as model:
        assert (await model.ask(enable_thinking=True)).content == "Yes"
        assert model.model.prompts[0].endswith("assistant\n")


@pytest.mark.parametrize(
    ("template", "force", "thinks"),
    [("default", False, True), (None, False, False), (None, True, True)],
)
async def test_the_list_of_models_tells(
    thinker: Any, template: str | None, force: bool, thinks: bool
) -> None:
    options = {} if template == "default" else {"template": template}
    async with thinker("x", force=force, **options) as model:
        about = (await model.server.client.get("/v1/models/scripted")).json()
    assert about["hookline"]["thinking"] is thinks


async def test_raw_completions_stay_raw(thinker: Any) -> None:
    async with thinker(*THOUGHT) as model:
        answer = await model.server.client.post("/v1/completions", json={"prompt": "x"})
    assert answer.json()["choices"][0]["text"] == "".join(THOUGHT)


async def test_wrong_settings_put_the_plugin_out_of_service(thinker: Any) -> None:
    async with thinker("x", budgets={"low": 0}) as model:
        states = (await model.server.client.get("/health")).json()["plugins"]
    (thinking,) = [state for state in states if state["name"] == "thinking"]
    assert thinking["state"] == "failed"
    assert "low" in thinking["reason"]
