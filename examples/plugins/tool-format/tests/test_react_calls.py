"""Calls in this format, read and kept to their schema."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from hookline.testing import LocalServer, PluginContractTests
from hookline_react_calls import ReActCalls

WEATHER = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string"}},
            "required": ["city"],
            "additionalProperties": False,
        },
    },
}
SAID = 'I will look. Action: get_weather\nAction Input: {"city":"Paris"}\n'


@pytest.fixture
def react(server: LocalServer) -> LocalServer:
    server.use("structured")
    server.use("tools", format="react")
    server.use(ReActCalls)
    server.says(*SAID)  # letter by letter: constraints know no words that come up later
    return server


def test_a_call(react: LocalServer, chat: Callable[..., Any]) -> None:
    answer = chat("What is the weather in Paris?", tools=[WEATHER])
    (call,) = answer.tool_calls
    assert call["function"]["name"] == "get_weather"
    assert json.loads(call["function"]["arguments"]) == {"city": "Paris"}
    assert answer.finish == "tool_calls"
    assert answer.text.strip() == "I will look."


def test_a_call_in_a_stream(react: LocalServer, stream: Callable[..., Any]) -> None:
    (call,) = stream("What is the weather in Paris?", tools=[WEATHER]).tool_calls
    assert json.loads(call["function"]["arguments"]) == {"city": "Paris"}


def test_it_is_the_one_in_use(react: LocalServer) -> None:
    (model,) = [m for m in react.client.get("/v1/models").json()["data"] if m["loaded"]]
    assert model["hookline"]["tool_format"] == "react"


class TestContract(PluginContractTests):
    plugin = ReActCalls
    extra_plugins = ("structured", "tools")
