"""Hooks on the plain and the streamed path: how often, in which order, and when they fail."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable
from typing import Any

import pytest

from hookline import Exchange, Job, QuotaExhausted, Unavailable, hookimpl
from hookline.engines.scripted import say
from hookline.errors import PluginFailed
from hookline.stream import Delta

CHAT_HOOKS = [
    *("admit", "transform", "template_vars", "render_prompt", "begin_answer", "shape_job", "stage"),
    *("opening_fields", "response_headers", "closing_fields", "settle"),
]
COMPLETION_HOOKS = [
    *("admit", "shape_job", "stage", "opening_fields", "response_headers"),
    *("closing_fields", "settle"),
]
BEFORE_THE_ANSWER = [
    *("admit", "transform", "template_vars", "render_prompt", "begin_answer", "shape_job", "stage"),
    *("opening_fields", "response_headers"),
]
IN_THE_ANSWER = ["feed", "finish", "closing_fields"]


async def ask(server: Any, streamed: Any, stream: bool, **fields: Any) -> None:
    if stream:
        assert (await streamed(server, **fields)).done
    elif "prompt" in fields:
        assert (await server.client.post(fields.pop("path"), json=fields)).status_code == 200
    else:
        assert (await server.chat(**fields)).status_code == 200


@pytest.mark.parametrize("stream", [False, True])
async def test_every_hook_once_in_plugin_order(
    on_port: Any, streamed: Any, until: Any, new_notes: Any, stream: bool
) -> None:
    log: list[str] = []
    plugins = {name: new_notes(name, log) for name in ("zeta", "alpha", "mid")}
    async with on_port(plugins=plugins) as server:
        await ask(server, streamed, stream)
        await until(lambda: server.kernel.in_flight == 0)
        assert log == [f"{name}.{hook}" for hook in CHAT_HOOKS for name in plugins]
        log.clear()
        await ask(server, streamed, stream, path="/v1/completions", prompt="x")
        await until(lambda: server.kernel.in_flight == 0)
        assert log == [f"{name}.{hook}" for hook in COMPLETION_HOOKS for name in plugins]


@pytest.mark.parametrize("stream", [False, True])
async def test_a_stage_for_every_choice(
    on_port: Any, streamed: Any, notes: Any, until: Any, stream: bool
) -> None:
    async with on_port(plugins={"notes": notes}) as server:
        await ask(server, streamed, stream, n=3)
        await until(lambda: server.kernel.in_flight == 0)
    assert notes.log.count("notes.stage") == 3
    assert notes.log.count("notes.shape_job") == 1
    assert notes.settled == [None]


async def test_fields_and_headers_on_both_paths(on_port: Any, streamed: Any, notes: Any) -> None:
    async with on_port(plugins={"notes": notes}) as server:
        for path, fields in (("/v1/chat/completions", {}), ("/v1/completions", {"prompt": "x"})):
            messages = {} if fields else {"messages": [{"role": "user", "content": "x"}]}
            plain = await server.client.post(path, json={**fields, **messages})
            events = await streamed(server, path, n=2, **fields)
            assert plain.headers["x-notes"] == events.headers["x-notes"] == "here"
            assert plain.json()["notes_opened"] is plain.json()["notes_closed"] is True
            opened = [place for place, c in enumerate(events.chunks) if "notes_opened" in c]
            closed = [place for place, c in enumerate(events.chunks) if "notes_closed" in c]
            assert (opened, closed) == ([0], [len(events.chunks) - 1])


async def test_plugins_cannot_hide_what_the_core_says(in_process: Any) -> None:
    class Loud:
        @hookimpl
        def opening_fields(self) -> dict[str, Any]:
            return {"choices": "mine", "id": "mine"}

    async with in_process(script=say("Good"), plugins={"loud": Loud()}) as server:
        body = (await server.chat()).json()
    assert body["choices"][0]["message"]["content"] == "Good"


@pytest.mark.parametrize("stream", [False, True])
async def test_a_failing_plugin_costs_its_own_part(
    on_port: Any, streamed: Any, notes: Any, stream: bool
) -> None:
    async with on_port(script=say("Good", "!"), plugins={"notes": notes}) as server:
        for count, hook in enumerate([*BEFORE_THE_ANSWER, *IN_THE_ANSWER], 1):
            notes.faults = {hook: RuntimeError("the plugin's secret")}
            if stream:
                events = await streamed(server)
                assert (events.text, events.done) == ("Good!", True), hook
                assert "secret" not in str(events.chunks), hook
            else:
                answer = await server.chat()
                assert answer.json()["choices"][0]["message"]["content"] == "Good!", hook
                assert "secret" not in answer.text, hook
            assert await failures(server) == count, hook
            assert await settled(server, notes) == [None], hook


async def settled(server: Any, notes: Any) -> list[BaseException | None]:
    """What `settle` was told since the last look, once nothing is at work any more."""
    while server.kernel.in_flight or server.engine.stats().running:
        await asyncio.sleep(0.002)
    told: list[BaseException | None] = notes.settled[:]
    notes.settled.clear()
    return told


async def failures(server: Any) -> int:
    """Failed calls of the plugin, counted in /health as in /metrics."""
    states = (await server.client.get("/health")).json()["plugins"]
    (count,) = [plugin["failures"] for plugin in states if plugin["name"] == "notes"]
    metrics = (await server.client.get("/metrics")).text
    lines = re.findall(r'plugin_failures_total{hook="\w+",plugin="notes"} ([0-9.]+)', metrics)
    assert sum(float(line) for line in lines) == count
    return int(count)


@pytest.mark.parametrize("stream", [False, True])
async def test_a_failing_plugin_that_was_asked_for_fails_the_request(
    on_port: Any, streamed: Any, notes: Any, stream: bool
) -> None:
    async with on_port(script=say("Good", "!"), plugins={"notes": notes}) as server:
        for hook in [*BEFORE_THE_ANSWER, *IN_THE_ANSWER]:
            notes.faults = {hook: RuntimeError("the plugin's secret")}
            if stream and hook in IN_THE_ANSWER:
                events = await streamed(server, note="please")
                assert not events.done, hook
                error = events.chunks[-1]["error"]
            else:
                answer = await server.chat(note="please", stream=stream)
                assert answer.status_code == 500, hook
                error = answer.json()["error"]
            assert error["code"] == "plugin_failed", hook
            assert "notes" in error["message"] and "secret" not in error["message"], hook
            told = await settled(server, notes)
            assert [type(error) for error in told] == [PluginFailed], hook


@pytest.mark.parametrize("stream", [False, True])
async def test_a_refusal_has_its_status(on_port: Any, notes: Any, stream: bool) -> None:
    refusal = Unavailable("Come back later.", retry_after=7, code="later")
    async with on_port(plugins={"notes": notes}) as server:
        for hook in BEFORE_THE_ANSWER:
            notes.faults = {hook: refusal}
            answer = await server.chat(stream=stream)
            assert answer.status_code == 503, hook
            assert answer.headers["retry-after"] == "7", hook
            assert answer.json()["error"]["code"] == "later", hook
            assert await settled(server, notes) == [refusal], hook
        assert await failures(server) == 0


async def test_a_refusal_in_the_answer(on_port: Any, streamed: Any, notes: Any) -> None:
    refusal = QuotaExhausted("Enough.")
    async with on_port(plugins={"notes": notes}) as server:
        for hook in IN_THE_ANSWER:
            notes.faults = {hook: refusal}
            answer = await server.chat()
            assert (answer.status_code, answer.json()["error"]["message"]) == (402, "Enough.")
            events = await streamed(server)
            assert events.chunks[-1]["error"]["message"] == "Enough."
            assert not events.done
            assert await settled(server, notes) == [refusal] * 2


@pytest.mark.parametrize("stream", [False, True])
async def test_settle_that_fails_spoils_nothing(
    on_port: Any, streamed: Any, until: Any, new_notes: Any, stream: bool
) -> None:
    first, second = new_notes("notes"), new_notes("second")
    first.faults["settle"] = RuntimeError("no")
    async with on_port(plugins={"notes": first, "second": second}) as server:
        await ask(server, streamed, stream)
        await until(lambda: server.kernel.in_flight == 0)
        assert first.settled == second.settled == [None]
        assert await failures(server) == 1


async def test_refused_requests_are_settled_with_their_refusal(in_process: Any, notes: Any) -> None:
    async with in_process(plugins={"notes": notes}, engine={"context": 60}) as server:
        await server.chat("x" * 100)
        await server.chat([{"type": "image_url", "image_url": {"url": "data:,"}}])
        await server.chat(logit_bias={"99999": 1})
        assert (await server.chat(temperature="hot")).status_code == 400
    assert [error.param for error in notes.settled] == [
        *("messages", "messages[0].content", "logit_bias")
    ]


async def test_what_plugins_change_is_what_is_asked(in_process: Any, listener: Any) -> None:
    class Editor:
        @hookimpl
        async def transform(self, exchange: Exchange) -> None:
            exchange.messages[-1].content = "edited"
            exchange.add_source({"type": "web"})

        @hookimpl
        async def shape_job(self, job: Job) -> None:
            job.max_tokens = 1

        @hookimpl
        def opening_fields(self, exchange: Exchange) -> dict[str, Any]:
            return {"sources": exchange.sources}

        @hookimpl
        def stage(self) -> Shout:
            return Shout()

    class Shout:
        def feed(self, delta: Delta) -> Iterable[Delta]:
            yield Delta(delta.text.upper(), tokens=delta.tokens)

        def finish(self) -> Iterable[Delta]:
            yield Delta("?")

    async with in_process(script=listener, plugins={"editor": Editor()}) as server:
        body = (await server.chat("original")).json()
    assert "edited" in listener.prompts[0] and "original" not in listener.prompts[0]
    assert body["choices"][0]["message"]["content"] == "GOOD?"
    assert body["choices"][0]["finish_reason"] == "length"
    assert body["sources"] == [{"index": 1, "type": "web"}]


async def test_what_plugins_begin_the_answer_with_is_part_of_the_prompt(
    in_process: Any, listener: Any
) -> None:
    class Begins:
        def __init__(self, text: str | None) -> None:
            self.text, self.seen = text, ""

        @hookimpl
        def begin_answer(self, prompt: str) -> str | None:
            self.seen = prompt
            return self.text

    plugins = {"a": Begins("Well, "), "silent": Begins(None), "b": Begins("<|im_end|>so")}
    async with in_process(script=listener, plugins=plugins) as server:
        body = (await server.chat("Hi")).json()
        counted = await server.client.post(
            "/v1/tokenize", json={"messages": [{"role": "user", "content": "Hi"}]}
        )
    assert listener.prompts[0].endswith("assistant\nWell, <|im_end|>so")
    assert plugins["b"].seen == listener.prompts[0][len("<s>") : -len("<|im_end|>so")]
    assert body["choices"][0]["message"]["content"] == "Good morning!"
    assert body["usage"]["prompt_tokens"] == len(listener.jobs[0].prompt) == counted.json()["count"]
    assert list(listener.jobs[0].prompt[-3:]) == [259, ord("s"), ord("o")]


async def test_reasoning_of_a_stage_is_kept_apart(on_port: Any, streamed: Any) -> None:
    class Thinking:
        @hookimpl
        def stage(self) -> Any:
            return self

        def feed(self, delta: Delta) -> Iterable[Delta]:
            channel: Any = "reasoning" if delta.text.startswith("hm") else "content"
            yield Delta(delta.text, channel, delta.tokens)

        def finish(self) -> Iterable[Delta]:
            return ()

    script = say("hm", "hm stop", "Yes", " stop", " no")
    async with on_port(script=script, plugins={"thinking": Thinking()}) as server:
        plain = (await server.chat(logprobs=True, stop=" stop")).json()["choices"][0]
        events = await streamed(server, logprobs=True, stop=" stop")
    assert plain["message"]["reasoning_content"] == "hmhm stop"
    assert plain["message"]["content"] == "Yes"
    choices = [chunk["choices"][0] for chunk in events.chunks]
    thought = "".join(choice["delta"].get("reasoning_content", "") for choice in choices)
    assert (thought, events.text, events.finishes) == ("hmhm stop", "Yes", ["stop"])
    logprobs = [e for c in choices if c["logprobs"] for e in c["logprobs"]["content"]]
    assert logprobs == plain["logprobs"]["content"]
    assert [entry["token"] for entry in logprobs] == ["Yes"]
