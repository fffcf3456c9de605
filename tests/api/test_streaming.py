"""Streamed answers: the order of chunks, what they carry, and how they end."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from typing import Any

import openai
import pytest

from hookline import EngineUnavailable, Job
from hookline.api import sse
from hookline.engines.scripted import Break, Line, Pause, say

MESSAGES: Any = [{"role": "user", "content": "Hi"}]


async def test_chunks_come_in_order(on_port: Any, streamed: Any, listener: Any) -> None:
    async with on_port(script=listener) as server:
        events = await streamed(server)
    assert events.status == 200
    assert events.headers["content-type"].startswith("text/event-stream")
    assert events.done
    assert events.text == "Good morning!"
    chunks = events.chunks
    assert len({(c["id"], c["created"], c["model"]) for c in chunks}) == 1
    assert chunks[0]["id"].startswith("chatcmpl-")
    assert {c["object"] for c in chunks} == {"chat.completion.chunk"}
    assert chunks[0]["choices"][0]["delta"] == {"role": "assistant", "content": ""}
    assert all("role" not in c["choices"][0]["delta"] for c in chunks[1:])
    assert [c["choices"][0]["finish_reason"] for c in chunks[:-1]] == [None] * (len(chunks) - 1)
    assert chunks[-1]["choices"][0]["finish_reason"] == "stop"
    assert all("usage" not in c and "timings" not in c for c in chunks[:-1])
    usage, timings = chunks[-1]["usage"], chunks[-1]["timings"]
    assert usage["total_tokens"] == usage["prompt_tokens"] + usage["completion_tokens"]
    assert timings["predicted_n"] == usage["completion_tokens"]


async def test_plain_and_streamed_agree(on_port: Any, streamed: Any, listener: Any) -> None:
    def lasting(body: dict[str, Any]) -> dict[str, Any]:
        times = {"queue_ms", "predicted_ms", "predicted_per_second"}
        times |= {"prompt_ms", "prompt_per_second"}
        kept = {k: v for k, v in body["timings"].items() if k not in times}
        return {"usage": body["usage"], "timings": kept}

    async with on_port(script=listener) as server:
        plain = (await server.chat("Hello there", logprobs=True, n=2)).json()
        events = await streamed(server, logprobs=True, n=2)
    assert lasting(plain) == lasting(events.chunks[-1])
    for index in (0, 1):
        mine = [c["choices"][0] for c in events.chunks if c["choices"][0]["index"] == index]
        text = "".join(choice["delta"].get("content", "") for choice in mine)
        logprobs = [
            e for choice in mine if choice["logprobs"] for e in choice["logprobs"]["content"]
        ]
        assert text == plain["choices"][index]["message"]["content"]
        assert logprobs == plain["choices"][index]["logprobs"]["content"]


async def test_no_empty_choices_without_include_usage(on_port: Any, streamed: Any) -> None:
    async with on_port() as server:
        for options in (None, {}, {"include_usage": False}):
            events = await streamed(server, stream_options=options, n=2)
            assert all(len(chunk["choices"]) == 1 for chunk in events.chunks)


async def test_include_usage_adds_one_chunk(on_port: Any, streamed: Any) -> None:
    """Clients that add up the usage of all chunks get it once, whether they asked for it or not."""
    async with on_port() as server:
        events = await streamed(server, stream_options={"include_usage": True})
        without = await streamed(server)
    *others, last = events.chunks
    assert last["choices"] == []
    assert not any("usage" in chunk for chunk in others)
    assert [chunk["usage"] for chunk in without.chunks if "usage" in chunk] == [last["usage"]]
    assert "timings" in others[-1] and "timings" not in last
    assert last["usage"]["completion_tokens"] > 0
    assert all(len(chunk["choices"]) == 1 for chunk in others)


async def test_each_choice_ends_once_and_the_last_end_carries_usage(
    on_port: Any, streamed: Any, listener: Any
) -> None:
    async with on_port(script=listener) as server:
        events = await streamed(server, n=5)
    ends = [c for c in events.chunks if c["choices"][0]["finish_reason"]]
    assert sorted(c["choices"][0]["index"] for c in ends) == [0, 1, 2, 3, 4]
    assert ["usage" in c for c in ends] == [False] * 4 + [True]
    roles = [c["choices"][0]["index"] for c in events.chunks if "role" in c["choices"][0]["delta"]]
    assert sorted(roles) == [0, 1, 2, 3, 4]
    assert events.chunks[-1] == ends[-1]


async def test_progress_of_prefill_and_decode(on_port: Any, streamed: Any) -> None:
    engine = {"prefill_chunk": 10, "step_seconds": 0.005}
    async with on_port(script=say("a", "b", "c"), engine=engine) as server:
        events = await streamed(server)
    progress = [chunk["progress"] for chunk in events.chunks if "progress" in chunk]
    prefill = [p for p in progress if p["phase"] == "prefill"]
    decode = [p for p in progress if p["phase"] == "decode"]
    total = events.chunks[-1]["usage"]["prompt_tokens"]
    assert {p["total"] for p in prefill} == {total}
    assert [p["done"] for p in prefill] == sorted(p["done"] for p in prefill)
    assert len(prefill) >= 2
    assert decode[-1]["tokens"] >= 3
    assert decode[-1]["decode_ms"] >= 0
    assert [p["phase"] for p in progress] == ["prefill"] * len(prefill) + ["decode"] * len(decode)


async def test_progress_in_the_queue(on_port: Any, streamed: Any, until: Any) -> None:
    everybody_is_here = threading.Event()

    def script(prompt: str, job: Job) -> Iterator[Line]:
        while not everybody_is_here.is_set():
            yield Pause(0.005)
        yield from "abcdefghij"

    engine = {"parallel": 1, "step_seconds": 0.002}
    async with on_port(script=script, engine=engine) as server:
        asked = []
        for number in range(4):
            asked.append(asyncio.create_task(streamed(server)))
            await until(lambda n=number: sum(_busy(server)) == n + 1)
        everybody_is_here.set()
        answers = await asyncio.gather(*asked)
    seen = [
        [c["progress"]["position"] for c in events.chunks if _phase(c) == "queue"]
        for events in answers
    ]
    assert seen[1][-1:] == [1]
    assert seen[2][-2:] == [2, 1]
    assert seen[3][-3:] == [3, 2, 1]
    assert answers[3].chunks[-1]["timings"]["queue_ms"] > 0


def _busy(server: Any) -> tuple[int, int]:
    stats = server.engine.stats()
    return stats.running, stats.queued


def _phase(chunk: dict[str, Any]) -> str | None:
    phase: str | None = chunk.get("progress", {}).get("phase")
    return phase


async def test_silence_is_filled(
    on_port: Any, streamed: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert sse.KEEP_ALIVE_SECONDS < 10
    monkeypatch.setattr(sse, "KEEP_ALIVE_SECONDS", 0.02)
    async with on_port(script=say("a", Pause(0.3), "b")) as server:
        events = await streamed(server)
        completion = await streamed(server, "/v1/completions", prompt="x")
    assert events.text == "ab"
    assert events.comments >= 3
    assert completion.comments >= 3


async def test_never_half_a_character(on_port: Any, streamed: Any) -> None:
    raw = "a😀é漢b".encode()
    lines = [raw[i : i + 1] for i in range(len(raw))]
    async with on_port(script=say(*lines)) as server:
        events = await streamed(server, logprobs=True)
        plain = (await server.chat()).json()
        cut = await streamed(server, max_tokens=3)
    assert events.text == "a😀é漢b" == plain["choices"][0]["message"]["content"]
    deltas = [c["choices"][0]["delta"].get("content", "") for c in events.chunks]
    assert "\ufffd" not in "".join(deltas)
    spelled = [
        byte
        for chunk in events.chunks
        for entry in (chunk["choices"][0]["logprobs"] or {"content": []})["content"]
        for byte in entry["bytes"]
    ]
    assert bytes(spelled) == raw
    assert (cut.text, cut.finishes) == ("a", ["length"])


async def test_invalid_bytes_become_a_replacement_character(on_port: Any, streamed: Any) -> None:
    async with on_port(script=say("a", b"\xff", "b")) as server:
        events = await streamed(server)
    assert events.text == "a\ufffdb"


async def test_control_tokens_never_show(on_port: Any, streamed: Any) -> None:
    async with on_port(script=say("a", "<|im_start|>", "b", "<|im_end|>", "c")) as server:
        events = await streamed(server, logprobs=True)
    assert events.text == "abc"
    assert "im_" not in str(events.chunks)


@pytest.mark.parametrize("n", [1, 3])
async def test_logprobs_agree_with_the_text_at_stops(on_port: Any, streamed: Any, n: int) -> None:
    async with on_port(script=say("Hel", "lo", " wor", "ld", "!")) as server:
        for stop, text, tokens in (
            ("world", "Hello ", ["Hel", "lo", " wor"]),
            (" world", "Hello", ["Hel", "lo"]),
            ("lo", "Hel", ["Hel"]),
            ("worlds", "Hello world!", ["Hel", "lo", " wor", "ld", "!"]),
        ):
            events = await streamed(server, stop=stop, logprobs=True, n=n)
            plain = (await server.chat(stop=stop, logprobs=True, n=n)).json()
            for choice in plain["choices"]:
                assert choice["message"]["content"] == text
                assert [e["token"] for e in choice["logprobs"]["content"]] == tokens
                assert text.startswith("".join(tokens[:-1]))
            for index in range(n):
                mine = [c["choices"][0] for c in events.chunks if c["choices"][0]["index"] == index]
                said = "".join(choice["delta"].get("content", "") for choice in mine)
                entries = [c["logprobs"]["content"] for c in mine if c["logprobs"]]
                assert said == text
                assert [e["token"] for entry in entries for e in entry] == tokens


async def test_a_stop_before_a_split_character_leaves_no_part_of_it(in_process: Any) -> None:
    emoji = "😀".encode()
    async with in_process(script=say("a", emoji[:2], emoji[2:], "b")) as server:
        choice = (await server.chat(stop="😀", logprobs=True)).json()["choices"][0]
    assert choice["message"]["content"] == "a"
    assert [entry["token"] for entry in choice["logprobs"]["content"]] == ["a"]


async def test_errors_before_the_first_byte_have_a_status(on_port: Any) -> None:
    async with on_port(engine={"context": 60}) as server:
        client = openai.AsyncOpenAI(base_url=f"{server.url}/v1", api_key="x", max_retries=0)
        with pytest.raises(openai.BadRequestError) as error:
            await client.chat.completions.create(
                model="m", messages=[{"role": "user", "content": "x" * 100}], stream=True
            )
        assert error.value.code == "context_length_exceeded"
        await client.close()


@pytest.mark.parametrize("fault", [Break(RuntimeError("boom")), EngineUnavailable("boom")])
@pytest.mark.parametrize("path", ["chat", "completions"])
async def test_errors_in_mid_stream_raise_in_the_sdk(
    on_port: Any, fault: Any, path: str, notes: Any
) -> None:
    async with on_port(
        script=say("one", " two", Pause(0.05), fault), plugins={"n": notes}
    ) as server:
        client = openai.AsyncOpenAI(base_url=f"{server.url}/v1", api_key="x", max_retries=0)
        text = ""
        with pytest.raises(openai.APIError, match="boom"):
            if path == "chat":
                async for chunk in await client.chat.completions.create(
                    model="m", messages=MESSAGES, stream=True
                ):
                    text += chunk.choices[0].delta.content or ""
            else:
                async for part in await client.completions.create(
                    model="m", prompt="x", stream=True
                ):
                    text += part.choices[0].text
        assert text == "one two"
        await client.close()
        assert [type(error) for error in notes.settled] == [EngineUnavailable]


async def test_after_an_error_nothing_comes(on_port: Any, streamed: Any) -> None:
    async with on_port(script=say("one", EngineUnavailable("boom"), "two")) as server:
        events = await streamed(server, n=2, stream_options={"include_usage": True})
    assert not events.done
    assert events.chunks[-1]["error"]["code"] == "engine_unavailable"
    assert [("error" in chunk) for chunk in events.chunks].count(True) == 1


async def test_a_stream_that_is_cut_off_ends_cancelled(
    on_port: Any, streamed: Any, until: Any
) -> None:
    async with on_port(script=say("one", Pause(60), "two")) as server:
        asked = asyncio.create_task(streamed(server))
        plain = asyncio.create_task(server.chat())
        await until(lambda: server.engine.stats().running == 2)
        await asyncio.sleep(0.05)
        await server.kernel.stop_engine()
        events = await asked
    assert (events.text, events.finishes, events.done) == ("one", ["cancelled"], True)
    assert events.chunks[-1]["usage"]["completion_tokens"] == 1
    assert (await plain).json()["choices"][0]["finish_reason"] == "cancelled"


async def test_an_empty_answer(on_port: Any, streamed: Any) -> None:
    async with on_port(script=say()) as server:
        events = await streamed(server)
        plain = (await server.chat()).json()["choices"][0]
    assert (events.text, events.finishes, events.done) == ("", ["stop"], True)
    assert plain["message"]["content"] == ""
