"""The plugin in a server: what clients ask for, get, and are refused."""

from __future__ import annotations

import asyncio
import json
from enum import Enum
from typing import Any, Literal

import openai
import pytest
from pydantic import BaseModel

from hookline import ConstraintSpec, InvalidRequest
from hookline.engines.scripted import say
from hookline_structured import Structured, StructuredSettings
from hookline_structured.validation import Validation, WrongAnswer

FLAG = {
    "type": "object",
    "properties": {"ok": {"type": "boolean"}},
    "required": ["ok"],
    "additionalProperties": False,
}


def schema_format(schema: Any, **more: Any) -> dict[str, Any]:
    return {"type": "json_schema", "json_schema": {"name": "test", "schema": schema, **more}}


def served(**about: Any) -> dict[str, Any]:
    """The options of a server with the plugin, whose model wants to say something else."""
    script = about.pop("script", say(*"Certainly! Here is your answer."))
    return {"script": script, "plugins": {"structured": Structured}, **about}


@pytest.mark.parametrize("said", ["Certainly!", '{"ok":true} and more', "}}}}}}", '{"ok": false}'])
async def test_whatever_the_model_wants_the_answer_is_valid(in_process: Any, said: str) -> None:
    async with in_process(**served(script=say(*said))) as server:
        answer = await server.chat(response_format=schema_format(FLAG, strict=True))
        choice = answer.json()["choices"][0]
        assert choice["finish_reason"] == "stop"
        assert isinstance(json.loads(choice["message"]["content"])["ok"], bool)


async def test_plain_and_streamed_are_the_same(on_port: Any) -> None:
    async with on_port(**served()) as server:
        client = openai.AsyncOpenAI(base_url=f"{server.url}/v1", api_key="none")
        ask: dict[str, Any] = {
            "model": "any",
            "messages": [{"role": "user", "content": "Hi"}],
            "response_format": schema_format(FLAG),
        }
        plain = await client.chat.completions.create(**ask)
        stream = await client.chat.completions.create(**ask, stream=True)
        text = "".join([c.choices[0].delta.content or "" async for c in stream])
        assert plain.choices[0].message.content == text
        assert json.loads(text)
        await client.close()


async def test_every_choice_is_valid(in_process: Any) -> None:
    async with in_process(**served()) as server:
        answer = await server.chat(response_format=schema_format(FLAG), n=3, logprobs=True)
        contents = [choice["message"]["content"] for choice in answer.json()["choices"]]
        assert [list(json.loads(content)) for content in contents] == [["ok"]] * 3


async def test_a_cut_answer_is_the_beginning_of_a_valid_one(in_process: Any) -> None:
    async with in_process(**served()) as server:
        answer = await server.chat(response_format=schema_format(FLAG), max_tokens=4)
        choice = answer.json()["choices"][0]
        assert choice["finish_reason"] == "length"
        assert choice["message"]["content"] == '{"ok'


async def test_a_stop_string_ends_the_answer_before_it(in_process: Any) -> None:
    async with in_process(**served()) as server:
        answer = await server.chat(response_format=schema_format(FLAG), stop='"ok"')
        choice = answer.json()["choices"][0]
        assert (choice["finish_reason"], choice["message"]["content"]) == ("stop", "{")


async def test_a_cut_number_is_no_mistake(in_process: Any) -> None:
    big = schema_format({"type": "integer", "minimum": 10, "maximum": 99})
    async with in_process(**served(script=say(*"42"))) as server:
        answer = await server.chat(response_format=big, max_tokens=1)
        assert answer.status_code == 200
        assert answer.json()["choices"][0]["message"]["content"] == "4"


async def test_json_object(in_process: Any) -> None:
    async with in_process(**served(script=say(*'{"a":[1,{}],"b":null}'))) as server:
        answer = await server.chat(response_format={"type": "json_object"})
        content = answer.json()["choices"][0]["message"]["content"]
        assert content == '{"a":[1,{}],"b":null}'


async def test_regex_and_grammar(in_process: Any) -> None:
    async with in_process(**served(script=say(*"12x9ab-yes"))) as server:
        regex = await server.chat(response_format={"type": "regex", "pattern": "[0-9]{3}"})
        assert regex.json()["choices"][0]["message"]["content"].isdigit()
        lark = {"type": "grammar", "grammar": 'start: "yes" | "no"'}
        answer = await server.chat(response_format=lark)
        assert answer.json()["choices"][0]["message"]["content"] in ("yes", "no")


@pytest.mark.parametrize("nothing", [None, {"type": "text"}])
async def test_text_is_free(in_process: Any, nothing: Any) -> None:
    async with in_process(**served(script=say("Good", " day"))) as server:
        answer = await server.chat(response_format=nothing)
        assert answer.json()["choices"][0]["message"]["content"] == "Good day"


SCHEMA = "response_format.json_schema"
REFUSED: list[tuple[Any, str]] = [
    ("json", "response_format"),
    ({}, "response_format.type"),
    ({"type": "xml"}, "response_format.type"),
    ({"type": "json_schema"}, SCHEMA),
    ({"type": "json_schema", "json_schema": {"name": "a"}}, f"{SCHEMA}.schema"),
    (schema_format(FLAG, strict="yes"), f"{SCHEMA}.strict"),
    ({"type": "json_schema", "json_schema": {"name": 5, "schema": FLAG}}, f"{SCHEMA}.name"),
    (schema_format("object"), f"{SCHEMA}.schema"),
    (
        schema_format({"properties": {"a": {"type": "string", "pattern": "(?=x)"}}}),
        f"{SCHEMA}.schema.properties.a.pattern",
    ),
    ({"type": "regex"}, "response_format.pattern"),
    ({"type": "regex", "pattern": "("}, "response_format.pattern"),
    ({"type": "grammar", "grammar": "start"}, "response_format.grammar"),
    ({"type": "grammar", "grammar": "start: <|im_end|>"}, "response_format.grammar"),
    ({"type": "grammar", "grammar": "start: <[300]>"}, "response_format.grammar"),
    (
        {"type": "grammar", "grammar": 'start: %json {"x-guidance": {"lenient": true}, "not": {}}'},
        "response_format.grammar",
    ),
]


async def test_refusals_name_the_place(in_process: Any) -> None:
    async with in_process(**served()) as server:
        for asked, place in REFUSED:
            answer = await server.chat(response_format=asked)
            error = answer.json()["error"]
            assert (answer.status_code, error["param"]) == (400, "response_format"), asked
            assert error["message"].startswith(f"'{place}':"), error["message"]
        assert (await server.chat(response_format=schema_format(FLAG))).status_code == 200


async def test_a_refusal_streamed_is_a_status_code(in_process: Any) -> None:
    async with in_process(**served()) as server:
        answer = await server.chat(response_format={"type": "xml"}, stream=True)
        assert answer.status_code == 400


async def test_a_schema_that_runs_away_is_refused_and_disturbs_nobody(in_process: Any) -> None:
    hostile: dict[str, Any] = {"type": "string"}
    for _ in range(12):
        hostile = {"not": {"anyOf": [hostile, {"type": "array", "items": hostile}]}}
    async with in_process(**served()) as server:
        both = await asyncio.gather(
            server.chat(response_format=schema_format(hostile)),
            server.chat(response_format=schema_format(FLAG)),
        )
        assert [answer.status_code for answer in both] == [400, 200]
        assert "simplify it" in both[0].json()["error"]["message"]


async def test_a_wrong_answer_is_a_500(in_process: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong(self: Validation) -> Any:
        raise WrongAnswer("not valid")

    monkeypatch.setattr(Validation, "finish", wrong)
    async with in_process(**served()) as server:
        answer = await server.chat(response_format=schema_format(FLAG))
        assert answer.status_code == 500
        assert answer.json()["error"]["code"] == "plugin_failed"
        assert server.kernel.plugins.found["structured"].failures == 1


async def test_other_plugins_get_constraints(in_process: Any) -> None:
    async with in_process(**served()) as server:
        spec = ConstraintSpec("json_schema", FLAG, "tools")
        grammar = await server.kernel.constraint(spec)
        assert grammar is await server.kernel.constraint(spec), "compiled once"
        assert grammar.start().mask()[ord("{")]
        refused = ConstraintSpec("json_schema", {"type": 5}, "tools", {"place": "tools[0].x"})
        with pytest.raises(InvalidRequest, match=r"tools\[0\]\.x\.type") as caught:
            await server.kernel.constraint(refused)
        assert caught.value.param == "tools"


async def test_whitespace_can_be_flexible(in_process: Any) -> None:
    about = served(script=say(*'{\n  "ok": true\n}'))
    about["plugins"] = {"structured": Structured(StructuredSettings(whitespace="flexible"))}
    async with in_process(**about) as server:
        answer = await server.chat(response_format=schema_format(FLAG))
        assert answer.json()["choices"][0]["message"]["content"] == '{\n  "ok": true\n}'


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


class Leaf(BaseModel):
    kind: Literal["leaf"]
    value: int | bool


class Branch(BaseModel):
    kind: Literal["branch"]
    colour: Colour | None
    children: list[Branch | Leaf]


async def test_pydantic_models_of_the_sdk(on_port: Any) -> None:
    said = '{"kind":"branch","colour":"blue","children":[{"kind":"leaf","value":5}]}'
    async with on_port(**served(script=say(*said))) as server:
        client = openai.AsyncOpenAI(base_url=f"{server.url}/v1", api_key="none")
        answer = await client.chat.completions.parse(
            model="any", messages=[{"role": "user", "content": "Hi"}], response_format=Branch
        )
        leaf = Leaf(kind="leaf", value=5)
        wanted = Branch(kind="branch", colour=Colour.BLUE, children=[leaf])
        assert answer.choices[0].message.parsed == wanted
        await client.close()
