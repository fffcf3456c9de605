"""Tools and ``response_format`` in one request: calls, or text that obeys the format."""

from __future__ import annotations

from typing import Any

import openai
import pytest
from pydantic import BaseModel

from hookline_tools.formats.llama import LLAMA
from hookline_tools.formats.mistral import MISTRAL
from hookline_tools.formats.qwen_coder import QWEN_CODER

GET = '<tool_call>\n{"name": "get", "arguments": {"city":"Rome"}}\n</tool_call>'
ADD = '<tool_call>\n{"name": "add", "arguments": {"a":2}}\n</tool_call>'
BOTH_PATHS = (False, True)


class Weather(BaseModel):
    city: str
    warm: bool


SCHEMA = {**Weather.model_json_schema(), "additionalProperties": False}
WEATHER = {"type": "json_schema", "json_schema": {"name": "weather", "schema": SCHEMA}}
TEXT = '{"city":"Rome","warm":true}'


async def test_either_a_text_of_the_format_or_calls(caller: Any) -> None:
    async with caller() as model:
        for stream in BOTH_PATHS:
            fields = {"response_format": WEATHER, "stream": stream}
            said = await model.ask(TEXT, **fields)
            assert (said.content, said.calls, said.finish) == (TEXT, [], "stop")
            called = await model.ask(f"{GET}\n{ADD}", **fields)
            assert called.made == [("get", {"city": "Rome"}), ("add", {"a": 2})]
            assert (called.content, called.finish) == (None, "tool_calls")
            one = await model.ask(f"{GET}\n{ADD}", parallel_tool_calls=False, **fields)
            assert (one.made, one.finish) == ([("get", {"city": "Rome"})], "tool_calls")


@pytest.mark.parametrize("plugins", [["structured", "tools"], ["tools", "structured"]])
async def test_nothing_else_can_come(caller: Any, plugins: list[str]) -> None:
    wrong = ["It is warm.", f"I look.\n{GET}", TEXT.replace("true", '"yes"'), ' {"city":"Rome"}']
    async with caller(order=plugins) as model:
        for says in wrong:
            fields = {"response_format": WEATHER, "max_tokens": 200}
            for stream in BOTH_PATHS:
                answer = await model.ask(says, stream=stream, **fields)
                if answer.finish == "stop":
                    Weather.model_validate_json(answer.content or "")
                else:
                    assert answer.finish == ("tool_calls" if answer.calls else "length")
        bent = await model.ask(GET.replace('"Rome"', "1234"), **fields)
        assert bent.calls[0]["function"]["arguments"].startswith('{"city":"')


@pytest.mark.parametrize("plugins", [["structured", "tools"], ["tools", "structured"]])
async def test_what_tool_choice_says_is_obeyed(caller: Any, plugins: list[str]) -> None:
    async with caller(order=plugins) as model:
        for stream in BOTH_PATHS:
            fields = {"response_format": WEATHER, "stream": stream}
            assert (await model.ask(TEXT, tool_choice="none", **fields)).content == TEXT
            must = await model.ask(GET, tool_choice="required", **fields)
            assert (must.content, must.made) == (None, [("get", {"city": "Rome"})])
            named = {"type": "function", "function": {"name": "add"}}
            assert (await model.ask(ADD, tool_choice=named, **fields)).made == [("add", {"a": 2})]
            allowed = {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": [named]}}
            assert (await model.ask(TEXT, tool_choice=allowed, **fields)).content == TEXT


FORMATS: list[tuple[dict[str, Any], str]] = [
    ({"type": "text"}, "It is warm."),
    ({"type": "json_object"}, '{"anything":[1,2]}'),
    ({"type": "json_object"}, '{"name":"get","arguments":{}}'),
    ({"type": "regex", "pattern": "[0-9]{3}|<tool>"}, "<tool>"),
    ({"type": "grammar", "grammar": 'start: "yes" | "<" more\nmore: "no" ">"'}, "<no>"),
]


async def test_every_format(caller: Any) -> None:
    async with caller() as model:
        for response_format, text in FORMATS:
            for stream in BOTH_PATHS:
                fields = {"response_format": response_format, "stream": stream}
                assert (await model.ask(text, **fields)).content == text
                assert (await model.ask(GET, **fields)).made == [("get", {"city": "Rome"})]


async def test_thought_first(caller: Any) -> None:
    async with caller() as model:
        for stream in BOTH_PATHS:
            fields = {"response_format": WEATHER, "enable_thinking": True, "stream": stream}
            said = await model.ask(f"Warm?</think>{TEXT}", **fields)
            assert (said.reasoning, said.content) == ("Warm?", TEXT)
            called = await model.ask(f"Warm?</think>{GET}", **fields)
            assert (called.reasoning, called.made) == ("Warm?", [("get", {"city": "Rome"})])


async def test_several_choices_and_answers_that_were_cut(caller: Any) -> None:
    async with caller() as model:
        answers = await model.ask_all(TEXT, n=3, response_format=WEATHER)
        assert [answer.content for answer in answers] == [TEXT] * 3
        for says in (TEXT, GET):
            for limit in (1, 3, len(says) // 2, len(says) - 1):
                answer = await model.ask(says, response_format=WEATHER, max_tokens=limit)
                assert answer.finish == "length"
                assert says is GET or TEXT.startswith(answer.content or "")


@pytest.mark.parametrize("form", [LLAMA, MISTRAL, QWEN_CODER], ids=lambda form: form.name)
async def test_every_way_to_write_calls(caller: Any, form: Any) -> None:
    """A document that looks like a bare call is a document: its white space tells."""
    like_a_call = '{"name":"get","parameters":{"city":"Rome"}}'
    arguments = "<parameter=city>\nRome\n</parameter>\n"
    called = form.write([("get", arguments if form.name == "qwen-coder" else '{"city":"Rome"}')])
    async with caller(format=form.name) as model:
        for stream in BOTH_PATHS:
            fields = {"response_format": {"type": "json_object"}, "stream": stream}
            assert (await model.ask(like_a_call, **fields)).content == like_a_call
            answer = await model.ask(called, **fields)
            assert (answer.content, answer.made) == (None, [("get", {"city": "Rome"})])


AMBIGUOUS: list[dict[str, Any]] = [
    {"type": "regex", "pattern": r"[\s\S]*"},
    {"type": "grammar", "grammar": "start: /(?s:.+)/"},
]


async def test_what_could_be_either_is_refused(caller: Any) -> None:
    async with caller() as model:
        for response_format in AMBIGUOUS:
            error = await model.refusal(response_format=response_format)
            assert error["param"] == "response_format"
            assert "call of a tool" in error["message"] and "<tool_call>" in error["message"]
            answer = await model.ask("x", response_format=response_format, tool_choice="none")
            assert answer.content == "x"
            answer = await model.ask(GET, response_format=response_format, tool_choice="required")
            assert answer.made == [("get", {"city": "Rome"})]


async def test_openais_parse(caller: Any) -> None:
    class get(BaseModel):
        city: str

    tools = [openai.pydantic_function_tool(get)]
    async with caller() as model:
        client = openai.AsyncOpenAI(
            base_url="http://127.0.0.1/v1", api_key="none", http_client=model.server.client
        )
        asked: dict[str, Any] = {"model": "any", "messages": [{"role": "user", "content": "Warm?"}]}
        model.model.text = TEXT
        said = await client.chat.completions.parse(**asked, response_format=Weather, tools=tools)
        assert said.choices[0].message.parsed == Weather(city="Rome", warm=True)
        model.model.text = GET
        called = await client.chat.completions.parse(**asked, response_format=Weather, tools=tools)
        (call,) = called.choices[0].message.tool_calls or []
        assert call.function.parsed_arguments == get(city="Rome")
        assert called.choices[0].message.parsed is None
