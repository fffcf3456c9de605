"""Raw completions: kinds of prompts, echo, logprobs, several choices, streams."""

from __future__ import annotations

from typing import Any

import openai
import pytest

PATH = "/v1/completions"


async def test_text_prompts_are_raw(in_process: Any, listener: Any) -> None:
    async with in_process(script=listener) as server:
        answer = await server.client.post(PATH, json={"prompt": "Once<|im_end|>"})
        ids = listener.jobs[0].prompt
        end = server.engine.tokenize("<|im_end|>", special=True)
    body = answer.json()
    assert listener.prompts == ["<s>Once<|im_end|>"]
    assert list(ids[-1:]) == end
    assert body["object"] == "text_completion"
    assert body["id"].startswith("cmpl-")
    assert body["choices"] == [
        {"index": 0, "text": "Good morning!", "logprobs": None, "finish_reason": "stop"}
    ]
    assert body["usage"]["prompt_tokens"] == len(ids)


KINDS: list[tuple[Any, list[str]]] = [
    ("ab", ["<s>ab"]),
    (["ab", "c"], ["<s>ab", "<s>c"]),
    ([97, 98], ["ab"]),
    ([[97], [98, 99]], ["a", "bc"]),
    ("", ["<s>"]),
]


async def test_kinds_of_prompts(in_process: Any, listener: Any) -> None:
    async with in_process(script=listener) as server:
        for prompt, expected in KINDS:
            listener.prompts.clear()
            answer = await server.client.post(PATH, json={"prompt": prompt, "n": 2})
            assert answer.status_code == 200, prompt
            assert sorted(listener.prompts) == sorted(expected * 2)
            choices = answer.json()["choices"]
            assert [choice["index"] for choice in choices] == list(range(2 * len(expected)))
            texts = {choice["text"] for choice in choices}
            assert texts == {"Good morning!"}


async def test_echo_begins_with_the_prompt_as_it_came(in_process: Any, streamed: Any) -> None:
    prompts: list[tuple[Any, list[str]]] = [
        ("Once <|im_end|> ü", ["Once <|im_end|> ü"]),
        (["a", "b"], ["a", "b"]),
        ([97, 98], ["ab"]),
    ]
    async with in_process() as server:
        for prompt, expected in prompts:
            fields = {"prompt": prompt, "echo": True, "max_tokens": 1}
            plain = (await server.client.post(PATH, json=fields)).json()
            without = (await server.client.post(PATH, json={**fields, "echo": False})).json()
            events = await streamed(server, PATH, **fields)
            for index, text in enumerate(expected):
                assert plain["choices"][index]["text"] == text + without["choices"][index]["text"]
            first = events.chunks[: len(expected)]
            assert [chunk["choices"][0]["text"] for chunk in first] == expected


async def test_logprobs(in_process: Any, listener: Any, streamed: Any) -> None:
    async with in_process(script=listener) as server:
        plain = (await server.client.post(PATH, json={"prompt": "x", "logprobs": 2})).json()
        zero = (await server.client.post(PATH, json={"prompt": "x", "logprobs": 0})).json()
        events = await streamed(server, PATH, prompt="x", logprobs=2)
    logprobs = plain["choices"][0]["logprobs"]
    assert logprobs["tokens"] == ["Good", " morning", "!"]
    assert logprobs["text_offset"] == [0, 4, 12]
    assert len(logprobs["token_logprobs"]) == len(logprobs["top_logprobs"]) == 3
    assert zero["choices"][0]["logprobs"]["top_logprobs"] == [{}, {}, {}]
    chunks = [c["choices"][0]["logprobs"] for c in events.chunks if c["choices"][0]["logprobs"]]
    for key, values in logprobs.items():
        assert [value for chunk in chunks for value in chunk[key]] == values


async def test_streams(on_port: Any, streamed: Any, listener: Any) -> None:
    async with on_port(script=listener) as server:
        events = await streamed(
            server, PATH, prompt=["x", "y"], n=2, stream_options={"include_usage": True}
        )
    *chunks, last = events.chunks
    assert events.done
    assert {c["object"] for c in events.chunks} == {"text_completion"}
    assert len({c["id"] for c in events.chunks}) == 1
    assert last["choices"] == [] and last["usage"]["completion_tokens"] > 0
    assert not any("usage" in chunk for chunk in chunks)
    ends = [c for c in chunks if c["choices"][0]["finish_reason"]]
    assert sorted(c["choices"][0]["index"] for c in ends) == [0, 1, 2, 3]
    assert ["timings" in c for c in chunks] == [False] * (len(chunks) - 1) + [True]
    for index in range(4):
        mine = [c["choices"][0]["text"] for c in chunks if c["choices"][0]["index"] == index]
        assert "".join(mine) == "Good morning!"


async def test_the_sdk(on_port: Any, listener: Any) -> None:
    async with (
        on_port(script=listener) as server,
        openai.AsyncOpenAI(base_url=f"{server.url}/v1", api_key="x") as client,
    ):
        plain = await client.completions.create(model="m", prompt="x", stop="n", logprobs=1)
        stream = await client.completions.create(model="m", prompt="x", stream=True)
        text = "".join([chunk.choices[0].text async for chunk in stream])
    assert plain.choices[0].text == "Good mor"
    assert plain.choices[0].finish_reason == "stop"
    assert text == "Good morning!"


WRONG: list[tuple[str, tuple[Any, ...]]] = [
    ("prompt", (None, 5, True, {}, [], [[]], [1, "a"], [-1], [4096], [[1], "a"], [1.5], [None])),
    ("prompt", ([10**30], [True])),
    ("logprobs", (True, -1, 21, 1.5, "1")),
    ("echo", (1, "true")),
    ("n", (0, 9)),
    ("max_tokens", (0, "1")),
    ("stream", (1,)),
    ("response_format", ({"type": "json_object"},)),
]


async def test_wrong_values_name_the_field(in_process: Any) -> None:
    async with in_process() as server:
        for field, value in ((field, value) for field, values in WRONG for value in values):
            answer = await server.client.post(PATH, json={"prompt": "x", field: value})
            case = f"{field} = {value}: {answer.text}"
            assert answer.status_code == 400, case
            assert answer.json()["error"]["param"].split("[")[0] == field, case
        answer = await server.client.post(PATH, json={"prompt": "x", "echo": True, "logprobs": 1})
        assert answer.json()["error"]["param"] == "echo"
        answer = await server.client.post(PATH, json={})
        assert answer.json()["error"]["param"] == "prompt"


@pytest.mark.parametrize("stream", [False, True])
async def test_prompts_that_cannot_fit(in_process: Any, stream: bool) -> None:
    async with in_process(engine={"context": 50}) as server:
        for prompt in ("x" * 49, [97] * 50, ["short", "x" * 60]):
            body = {"prompt": prompt, "stream": stream}
            answer = await server.client.post(PATH, json=body)
            assert answer.status_code == 400
            error = answer.json()["error"]
            assert (error["code"], error["param"]) == ("context_length_exceeded", "prompt")
        assert (await server.client.post(PATH, json={"prompt": "x" * 48})).status_code == 200
