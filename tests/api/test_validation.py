"""Values that are wrong name their field; null is absent; limits are inclusive."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterator
from typing import Any

from hookline import InvalidRequest
from hookline.api.validation import validate


async def test_null_means_absent(in_process: Any, listener: Any) -> None:
    fields = [
        *("model", "stream", "stream_options", "max_tokens", "max_completion_tokens", "stop"),
        *("temperature", "top_p", "top_k", "min_p", "presence_penalty", "frequency_penalty"),
        *("repetition_penalty", "logit_bias", "seed", "n", "logprobs", "top_logprobs"),
        *("response_format", "tools", "tool_choice", "parallel_tool_calls", "enable_thinking"),
        *("reasoning_effort", "thinking_budget", "web_search", "knowledge"),
        *("chat_template_kwargs", "user", "never_heard_of"),
    ]
    async with in_process(script=listener) as server:
        await server.chat()
        answer = await server.chat(**dict.fromkeys(fields))
    assert answer.status_code == 200
    assert listener.jobs[0] == listener.jobs[1]


async def test_null_means_absent_inside(in_process: Any) -> None:
    call = {"id": "c1", "type": None, "function": {"name": "f", "arguments": None}}
    nothing = dict.fromkeys(("name", "tool_calls", "tool_call_id", "reasoning_content"))
    messages = [
        {"role": "user", "content": "hi", **nothing},
        {"role": "assistant", "content": None, "tool_calls": [call], "refusal": None},
        {"role": "tool", "content": None, "tool_call_id": "c1"},
        {"role": "user", "content": [{"type": "text", "text": "x", "cache_control": None}]},
    ]
    body = {"messages": messages, "stream_options": {"include_usage": None}}
    async with in_process() as server:
        answer = await server.client.post("/v1/chat/completions", json=body)
    assert answer.status_code == 200, answer.text


WRONG_TYPES: list[tuple[str, tuple[Any, ...]]] = [
    ("model", (5, [], {}, True)),
    ("stream", (0, 1, "true", "false", [], {})),
    ("stream_options", (5, "x", [], True)),
    ("max_tokens", (0, -1, 1.5, 5.0, "5", True, [], 1e999)),
    ("max_completion_tokens", (0, -1, 1.5, "5", True)),
    ("stop", (5, True, {}, "", ["a"] * 17)),
    ("temperature", (-0.1, 2.1, "0.5", True, [], 1e999, -1e999)),
    ("top_p", (-0.1, 1.1, "1", True, 1e999)),
    ("top_k", (-2, 1.5, "1", True)),
    ("min_p", (-0.1, 1.1, "0", True)),
    ("presence_penalty", (-2.1, 2.1, "0", 1e999)),
    ("frequency_penalty", (-2.1, 2.1, "0", True)),
    ("repetition_penalty", (0, -1, 10.1, "1", 1e999)),
    ("logit_bias", ([], "x", 5, {"abc": 1}, {"-1": 1}, {"4096": 1})),
    ("logit_bias", ({"9" * 5000: 1}, {"1.5": 1}, {"²": 1}, {"": 1})),
    ("seed", (1.5, "1", True, 2**63, -(2**63) - 1, 10**400)),
    ("n", (0, -1, 9, 1.5, "1", True)),
    ("logprobs", (1, "true", [])),
    ("top_logprobs", (-1, 21, 1.5, "1", 3)),
    ("chat_template_kwargs", ([], "x", 5, {"messages": []})),
    ("messages", ([], {}, "x", 5, None)),
]


async def test_wrong_values_name_the_field(in_process: Any) -> None:
    async with in_process() as server:
        for field, value in ((field, value) for field, values in WRONG_TYPES for value in values):
            answer = await server.client.post(
                "/v1/chat/completions",
                content=dumps({"messages": [{"role": "user", "content": "x"}], field: value}),
                headers={"Content-Type": "application/json"},
            )
            case = f"{field} = {value!s:.40}: {answer.text:.300}"
            assert answer.status_code == 400, case
            error = answer.json()["error"]
            assert error["type"] == "invalid_request_error", case
            assert error["code"] is None, case
            assert error["param"] is not None, case
            assert re.split(r"[.\[]", error["param"])[0] == field, case
            assert field in error["message"], case
        assert (await server.chat()).status_code == 200


def dumps(body: Any) -> str:
    """JSON with infinity as a number that is too large, as a client can write it."""
    return json.dumps(body).replace("Infinity", "1e999")


INSIDE: list[tuple[str, Any]] = [
    ("messages[0]", "hi"),
    ("messages[0]", None),
    ("messages[0].role", {"content": "x"}),
    ("messages[0].role", {"role": "robot", "content": "x"}),
    ("messages[0].role", {"role": 5, "content": "x"}),
    ("messages[0].content", {"role": "user"}),
    ("messages[0].content", {"role": "system", "content": None}),
    ("messages[0].content", {"role": "user", "content": 5}),
    ("messages[0].content", {"role": "user", "content": {"text": "x"}}),
    ("messages[0].content[0]", {"role": "user", "content": ["x"]}),
    ("messages[0].content[0].type", {"role": "user", "content": [{"text": "x"}]}),
    ("messages[0].content[0].type", {"role": "user", "content": [{"type": "video", "text": "x"}]}),
    ("messages[0].content[0].text", {"role": "user", "content": [{"type": "text"}]}),
    ("messages[0].content[0].text", {"role": "user", "content": [{"type": "text", "text": 5}]}),
    (
        "messages[0].content[0].image_url.url",
        {"role": "user", "content": [{"type": "image_url", "image_url": {}}]},
    ),
    ("messages[0].name", {"role": "user", "content": "x", "name": 5}),
    ("messages[0].tool_calls", {"role": "assistant", "tool_calls": "x"}),
    (
        "messages[0].tool_calls[0].function",
        {"role": "assistant", "tool_calls": [{"id": "c"}]},
    ),
]


async def test_wrong_messages_name_the_place(in_process: Any) -> None:
    async with in_process() as server:
        for param, message in INSIDE:
            answer = await server.client.post("/v1/chat/completions", json={"messages": [message]})
            assert answer.status_code == 400, message
            assert answer.json()["error"]["param"] == param, message


FUNCTION = {"type": "function", "function": {"name": "f"}}
EVERYTHING: dict[str, Any] = {
    "messages": [
        {"role": "system", "content": "s"},
        {
            "role": "user",
            "name": "bob",
            "content": [
                {"type": "text", "text": "x"},
                {"type": "image_url", "image_url": {"url": "data:", "detail": "low"}},
            ],
        },
        {
            "role": "assistant",
            "tool_calls": [{"id": "1", **FUNCTION}],
        },
        {"role": "tool", "tool_call_id": "1", "content": "r"},
    ],
    "stream_options": {"include_usage": True},
    "stop": ["a"],
    "logit_bias": {"1": 1.0},
    "tools": [{"type": "function", "function": {"name": "f", "description": "d", "strict": True}}],
    "tool_choice": {
        "type": "allowed_tools",
        "allowed_tools": {"mode": "auto", "tools": [FUNCTION]},
    },
}
WRONG: tuple[Any, ...] = (None, 5, [], {}, "x", True, [None], [5], {"type": None}, {"type": "x"})


def places(value: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if isinstance(value, dict | list):
        steps = value.items() if isinstance(value, dict) else enumerate(value)
        for step, inside in steps:
            yield (*at, step)
            yield from places(inside, (*at, step))


def changed(at: tuple[Any, ...], value: Any) -> Any:
    body = inside = json.loads(json.dumps(EVERYTHING))  # no part stands in it twice
    for step in at[:-1]:
        inside = inside[step]
    inside[at[-1]] = value
    return body


async def test_whatever_is_wrong_is_named_itself(in_process: Any) -> None:
    """Every part of a body in turn becomes every wrong thing: the error names it, or what is
    missing right below it, and never a place that cannot be."""
    below = re.compile(r"(\[0\]|\.(type|role|name|function|allowed_tools|tools|mode|url|id|text))?")
    refused = 0
    async with in_process() as server:
        model = server.kernel.chat_request
        validate(model, EVERYTHING)
        for at, value in itertools.product(places(EVERYTHING), WRONG):
            try:
                validate(model, changed(at, value))
            except InvalidRequest as error:
                refused += 1
                place = "".join(f"[{s}]" if isinstance(s, int) else f".{s}" for s in at)[1:]
                assert error.param is not None and error.param.startswith(place), (at, value)
                assert below.fullmatch(error.param[len(place) :]), (at, value, error.param)
                assert f"'{error.param}'" in error.message
    assert refused > 200


async def test_a_million_wrong_messages_are_one_error(in_process: Any) -> None:
    async with in_process() as server:
        answer = await server.client.post("/v1/chat/completions", json={"messages": [0] * 10**6})
    assert answer.status_code == 400
    assert "more" not in answer.json()["error"]["message"]


async def test_limits_are_inclusive(in_process: Any, listener: Any) -> None:
    fields = {
        "temperature": 2,
        "top_p": 0,
        "top_k": -1,
        "min_p": 1,
        "presence_penalty": -2,
        "frequency_penalty": 2,
        "repetition_penalty": 10,
        "logit_bias": {"0": -100, "4095": 100.0},
        "seed": -(2**63),
        "stop": [str(number) for number in range(16)],
        "max_tokens": 10**30,
    }
    async with in_process(script=listener) as server:
        assert (await server.chat(**fields)).status_code == 200
    sampling = listener.jobs[0].sampling
    assert (sampling.temperature, sampling.top_p, sampling.top_k, sampling.min_p) == (2, 0, 0, 1)
    assert (sampling.presence_penalty, sampling.frequency_penalty) == (-2, 2)
    assert sampling.repetition_penalty == 10
    assert sampling.logit_bias == {0: -100, 4095: 100}
    assert sampling.seed == -(2**63)
