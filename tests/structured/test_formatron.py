"""formatron: only the schemas that it gets right, and those right."""

from __future__ import annotations

import json
import logging
from typing import Any

import jsonschema_rs
import pytest

from hookline.engines.scripted import say
from hookline_structured import Structured, StructuredSettings
from hookline_structured.formatron_engine import FormatronGrammar, source, within

pytest.importorskip("formatron")

PLAIN = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "flags": {"type": "array", "items": {"type": "boolean"}},
        "kind": {"enum": ["one", "two"]},
        "size": {
            "type": "object",
            "properties": {"n": {"type": "number"}, "i": {"type": "integer"}},
            "required": ["n", "i"],
            "additionalProperties": False,
        },
    },
    "required": ["name", "flags", "kind", "size"],
    "additionalProperties": False,
}

OUTSIDE = [
    True,
    {"type": "array", "items": {"type": "string"}},
    {**PLAIN, "required": ["name"]},
    {**PLAIN, "additionalProperties": True},
    {**PLAIN, "properties": {**PLAIN["properties"], "name": {"type": "string", "minLength": 1}}},  # type: ignore[dict-item]
    {**PLAIN, "properties": {**PLAIN["properties"], "kind": {"enum": ["ü"]}}},  # type: ignore[dict-item]
]


def test_knows_its_limits() -> None:
    assert within(PLAIN)
    assert not [schema for schema in OUTSIDE if within(schema)]  # type: ignore[arg-type]


def test_walks_end_in_valid_documents(tokens: Any, walk: Any, chance: Any) -> None:
    grammar = FormatronGrammar(source(PLAIN), tokens)
    judge = jsonschema_rs.Draft202012Validator(PLAIN)
    documents = [walk(grammar, chance(seed)) for seed in range(20)]
    ended = [document for document in documents if document is not ...]
    assert ended
    assert all(map(judge.is_valid, ended))


@pytest.mark.parametrize("inside", [True, False])
async def test_the_setting(in_process: Any, caplog: Any, inside: bool) -> None:
    schema = {
        "type": "object",
        "properties": {"ok": {"type": "boolean"}},
        "required": ["ok"] if inside else [],
        "additionalProperties": False,
    }
    plugin = Structured(StructuredSettings(engine="formatron"))
    caplog.set_level(logging.INFO)
    async with in_process(script=say(*'{"ok":true}'), plugins={"structured": plugin}) as server:
        asked = {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}
        answer = await server.chat(response_format=asked)
        assert answer.status_code == 200, answer.text
        assert json.loads(answer.json()["choices"][0]["message"]["content"]) == {"ok": True}
    assert ("outside of what formatron" in caplog.text) == (not inside)
