"""Tool calls over HTTP, streamed and plain, each letter under the constraint."""

from __future__ import annotations

import json
import re
from itertools import product
from pathlib import Path
from typing import Any

import pytest

GET = '<tool_call>\n{"name": "get", "arguments": {"city":"Rome"}}\n</tool_call>'
ADD = '<tool_call>\n{"name": "add", "arguments": {"a":2}}\n</tool_call>'
BOTH_PATHS = (False, True)
NAMED = {"type": "function", "function": {"name": "add"}}


GET_TOOL = {
    "type": "function",
    "function": {
        "name": "get",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
    },
}


def a_tool(name: str, parameters: Any = None, **more: Any) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name, "parameters": parameters, **more}}


async def test_a_call_a_text_and_both(caller: Any) -> None:
    async with caller() as model:
        for stream in BOTH_PATHS:
            called = await model.ask(GET, stream=stream)
            assert (called.content, called.finish) == (None, "tool_calls")
            assert called.made == [("get", {"city": "Rome"})]
            said = await model.ask("It is < warm.", stream=stream)
            assert (said.content, said.calls, said.finish) == ("It is < warm.", [], "stop")
            both = await model.ask(f"I look.\n{GET}", stream=stream)
            assert (both.content, both.made) == ("I look.", called.made)
            assert both.finish == "tool_calls"


async def test_parallel_calls(caller: Any) -> None:
    async with caller() as model:
        for stream in BOTH_PATHS:
            answer = await model.ask(f"{GET}\n{ADD}", stream=stream)
            assert answer.made == [("get", {"city": "Rome"}), ("add", {"a": 2})]
            assert len({call["id"] for call in answer.calls}) == 2
            assert answer.finish == "tool_calls"
            one = await model.ask(f"{GET}\n{ADD}", parallel_tool_calls=False, stream=stream)
            assert (one.made, one.finish) == (answer.made[:1], "tool_calls")


async def test_a_call_that_must_come(caller: Any) -> None:
    async with caller() as model:
        for stream in BOTH_PATHS:
            for choice, names in (("required", {"get", "add"}), (NAMED, {"add"})):
                says = "I would rather talk."
                answer = await model.ask(says, tool_choice=choice, stream=stream, max_tokens=300)
                assert answer.calls and answer.content is None
                assert {call["function"]["name"] for call in answer.calls} <= names
            assert (answer.finish, len(answer.made)) == ("tool_calls", 1)


@pytest.mark.parametrize(
    "wrong",
    [GET.replace('"Rome"', "1234"), ADD.replace("2", '"2"'), ADD.replace("}}", ',"more":1}}')],
)
async def test_a_model_cannot_break_a_schema(caller: Any, wrong: str) -> None:
    async with caller() as model:
        answer = await model.ask(wrong, parallel_tool_calls=False, max_tokens=300)
    (call,) = answer.calls
    begun = call["function"]["arguments"]
    if call["function"]["name"] == "get":
        assert begun.startswith('{"city":"')
    else:
        assert answer.finish == "tool_calls"
        assert json.loads(begun).keys() == {"a"}
        assert isinstance(json.loads(begun)["a"], int)


async def test_without_a_choice_to_call(caller: Any) -> None:
    async with caller() as model:
        answer = await model.ask("It is warm.", tool_choice="none")
        assert (answer.content, answer.finish) == ("It is warm.", "stop")
        assert "tools:" not in model.model.prompts[0]
        assert model.model.jobs[0].grammar is None


async def test_what_is_absent(caller: Any) -> None:
    async with caller() as model:
        nothing: list[dict[str, Any]] = [{"tools": []}, {"tools": None}]
        for fields in (*nothing, {"tools": [], "tool_choice": None}):
            answer = await model.ask(GET, **fields)
            assert (answer.content, answer.calls, answer.finish) == (GET, [], "stop")
        assert (await model.ask(GET, tool_choice=None)).finish == "tool_calls"


async def test_a_call_that_was_cut_is_no_complete_one(caller: Any) -> None:
    async with caller() as model:
        for stream in BOTH_PATHS:
            for limit in (len("<tool_call>"), len(GET) // 2, len(GET) - 1, len(GET)):
                answer = await model.ask(GET, max_tokens=limit, stream=stream)
                assert (answer.finish, answer.content or "") == ("length", ""), limit
            whole = await model.ask(GET, max_tokens=len(GET) + 1, stream=stream)
            assert whole.finish == "tool_calls"


async def test_every_choice_calls_for_itself(caller: Any) -> None:
    async with caller() as model:
        for stream in BOTH_PATHS:
            answers = await model.ask_all(GET, n=3, stream=stream)
            assert [answer.made for answer in answers] == [[("get", {"city": "Rome"})]] * 3
            assert len({answer.calls[0]["id"] for answer in answers}) == 3


async def test_thought_first_then_the_call(caller: Any) -> None:
    thought = "<tool_call> is what I need.</think>"
    async with caller() as model:
        for stream, choice in product(BOTH_PATHS, ("auto", "required")):
            fields = {"enable_thinking": True, "tool_choice": choice, "stream": stream}
            answer = await model.ask(thought + GET, **fields)
            assert answer.reasoning == "<tool_call> is what I need."
            assert (answer.made, answer.finish) == ([("get", {"city": "Rome"})], "tool_calls")


async def test_logprobs_are_those_of_the_content(caller: Any) -> None:
    async with caller() as model:
        model.model.text = f"Hm.{GET}"
        body = (await model.server.chat(tools=[GET_TOOL], logprobs=True)).json()
    tokens = [entry["token"] for entry in body["choices"][0]["logprobs"]["content"]]
    assert "".join(tokens) == "Hm."


# Refusals


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"tools": None, "tool_choice": "auto"}, "tool_choice"),
    ({"tools": [], "tool_choice": "required"}, "tool_choice"),
    ({"tool_choice": {"type": "function", "function": {"name": "sub"}}}, "tool_choice"),
    ({"tool_choice": "perhaps"}, "tool_choice"),
    ({"tools": [a_tool("a"), a_tool("b"), a_tool("a")]}, "tools"),
    ({"tools": [a_tool("a b")]}, "tools[0].function.name"),
    ({"tools": [{"type": "retrieval"}]}, "tools[0].type"),
    ({"tools": [a_tool("a"), a_tool("b", {"type": "string"})]}, "tools[1].function.parameters"),
    (
        {"tools": [a_tool("a"), a_tool("b", {"properties": {"x": {"type": "colour"}}})]},
        "tools[1].function.parameters",
    ),
    ({"tools": [a_tool("a", {"properties": ["x"]})]}, "tools[0].function.parameters"),
    ({"tools": [a_tool("a", {"required": "x"})]}, "tools[0].function.parameters"),
]


async def test_refusals_name_what_is_wrong(caller: Any) -> None:
    async with caller() as model:
        for fields, param in REFUSED:
            error = await model.refusal(**fields)
            assert error["param"] == param
            assert param.split("[")[0] in error["message"]
        assert (await model.ask("Fine.")).content == "Fine."


async def test_without_a_plugin_for_constraints_nothing_is_called(in_process: Any) -> None:
    async with in_process(settings={"plugins": ["tools"]}) as server:
        states = (await server.client.get("/health")).json()["plugins"]
        answer = await server.chat(tools=[GET_TOOL])
    (tools,) = [state for state in states if state["name"] == "tools"]
    assert (tools["state"], "constraint" in tools["reason"]) == ("failed", True)
    assert answer.status_code == 400
    assert "'tools'" in answer.json()["error"]["message"]


async def test_a_choice_among_some_of_the_tools(caller: Any) -> None:
    async with caller() as model:
        allowed = {"mode": "required", "tools": [NAMED]}
        choice = {"type": "allowed_tools", "allowed_tools": allowed}
        answer = await model.ask(ADD, tool_choice=choice)
        assert answer.made == [("add", {"a": 2})]
        assert "tools: get add" in model.model.prompts[0]


# Conversations

HISTORY: list[dict[str, Any]] = [
    {"role": "user", "content": "How warm is it in Rome and Oslo?"},
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {
                "id": "call_1",
                "type": "function",
                "function": {"name": "get", "arguments": '{"city": "Rome"}'},
            },
            {
                "id": "call_2",
                "type": "function",
                "function": {"name": "get", "arguments": {"city": "Oslo"}},
            },
        ],
    },
    {"role": "tool", "tool_call_id": "call_1", "content": "20"},
    {"role": "tool", "tool_call_id": "call_2", "content": [{"type": "text", "text": "5"}]},
]


async def test_a_conversation_goes_on(caller: Any) -> None:
    async with caller() as model:
        for content in (None, "", [{"type": "text", "text": ""}]):
            HISTORY[1]["content"] = content
            answer = await model.ask("20 and 5.", messages=HISTORY)
            assert answer.content == "20 and 5."
            assert model.model.prompts[-1].endswith(
                'assistant: <tool_call>{"name": "get", "arguments": {"city": "Rome"}}</tool_call>'
                '<tool_call>{"name": "get", "arguments": {"city": "Oslo"}}</tool_call>\n'
                "tool: 20\ntool: 5\n"
            )
        absent = [HISTORY[0], {k: v for k, v in HISTORY[1].items() if k != "content"}]
        assert (await model.ask("Hm", messages=[*absent, *HISTORY[2:]])).content == "Hm"


async def test_arguments_that_are_no_object(caller: Any) -> None:
    call = {"id": "1", "type": "function", "function": {"name": "get", "arguments": '{"city'}}
    messages = [*HISTORY[:1], {"role": "assistant", "tool_calls": [call]}]
    async with caller() as model:
        error = await model.refusal(messages=messages)
    assert error["param"] == "messages[1].tool_calls[0].function.arguments"


async def test_a_model_without_a_place_for_tools(caller: Any) -> None:
    async with caller(None) as model:
        answer = await model.ask(f"{GET}\n{ADD}", messages=HISTORY)
        prompt = model.model.prompts[0]
        await model.ask("Hm", tools=None)
    assert (answer.made, answer.finish) == ([("get", {"city": "Rome"})], "tool_calls")
    assert prompt.startswith("<s><|im_start|>system\nYou can call functions.")
    assert '\n{"name": "get", "parameters": {"type": "object", "properties": {"city": ' in prompt
    assert GET.replace('"city":"Rome"', '"city": "Rome"') in prompt
    assert "user\n<tool_response>\n20\n</tool_response>\n<tool_response>\n5\n" in prompt
    assert "functions" not in model.model.prompts[1]


async def test_a_model_that_was_not_taught_is_kept_from_repeating_itself(caller: Any) -> None:
    async with caller(None) as model:
        await model.ask(GET)
        await model.ask(GET, tool_choice="required")
        await model.ask(GET, tool_choice="required", presence_penalty=0.5)
        penalties = [job.sampling.frequency_penalty for job in model.model.jobs]
        assert (penalties[0], penalties[1] > 0, penalties[2]) == (0, True, 0)
    async with caller() as model:
        await model.ask(GET, tool_choice="required")
        assert model.model.jobs[0].sampling.frequency_penalty == 0


# Formats


async def test_another_plugin_adds_the_format_of_the_page(caller: Any) -> None:
    page = Path(__file__).parents[2] / "docs" / "tools.md"
    (code,) = re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    scope: dict[str, Any] = {}
    exec(compile(code, "tools.md", "exec"), scope)  # noqa: S102
    plugins = {"shouting": scope["Shouting"]()}
    async with caller("{{ tools }}CALL ", plugins=plugins) as model:
        answer = await model.ask('CALL get({"city":"Rome"}) CALL add({"a":2})')
        about = (await model.server.client.get("/v1/models/scripted")).json()["hookline"]
    assert answer.made == [("get", {"city": "Rome"}), ("add", {"a": 2})]
    assert (about["tools"], about["tool_format"]) == (True, "shouted")


@pytest.mark.parametrize(
    ("template", "form"), [(None, "generic"), ("{{ tools }}<tool_call>", "hermes")]
)
async def test_the_list_of_models_tells(caller: Any, template: str | None, form: str) -> None:
    async with caller(template) as model:
        about = (await model.server.client.get("/v1/models/scripted")).json()["hookline"]
    assert (about["tools"], about["tool_format"]) == (True, form)


async def test_a_format_can_be_set(caller: Any) -> None:
    async with caller(format="mistral") as model:
        answer = await model.ask('[TOOL_CALLS][{"name": "get", "arguments": {"city":"Rome"}}]')
    assert answer.made == [("get", {"city": "Rome"})]
    assert len(answer.calls[0]["id"]) == 9
    async with caller(format="mistrall") as model:
        states = (await model.server.client.get("/health")).json()["plugins"]
        assert "'tools', which could not start" in (await model.refusal())["message"]
    (tools,) = [state for state in states if state["name"] == "tools"]
    assert "there is no 'mistrall'" in tools["reason"]


async def test_sixty_large_tools(caller: Any) -> None:
    text = "It does something very useful. " * 50
    tools = [
        a_tool(f"tool_{n}", {"properties": {f"p{n}": {"type": "integer", "description": text}}})
        for n in range(60)
    ]
    assert len(json.dumps(tools)) > 90_000
    call = '<tool_call>\n{"name": "tool_42", "arguments": {"p42":7}}\n</tool_call>'
    async with caller(engine={"context": 300_000, "prefill_chunk": 100_000}) as model:
        assert (await model.ask(call, tools=tools)).made == [("tool_42", {"p42": 7})]
