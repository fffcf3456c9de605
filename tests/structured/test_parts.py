"""The small parts: masks, numbers, endless schemas, the last look, the analysts, the cache."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from hookline import ConstraintSpec, Delta, InvalidRequest, Token
from hookline.engines.scripted import ScriptedEngine
from hookline_structured import grammar
from hookline_structured.analyst import Analysts, TooLong
from hookline_structured.canonical import validator
from hookline_structured.compiler import Compiler
from hookline_structured.dialect import Document
from hookline_structured.digits import LONGEST, Digits
from hookline_structured.finite import finite
from hookline_structured.grammar import CompileError, LLGrammar, TooComplex
from hookline_structured.refusal import Refused
from hookline_structured.settings import StructuredSettings
from hookline_structured.validation import Validation, WrongAnswer

END = 257
FLAG = {"type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"]}


def say(constraint: Any, text: bytes) -> None:
    for byte in text:
        assert constraint.mask()[byte], (text, chr(byte))
        constraint.accept(byte)


# Masks


def test_after_the_value_only_the_end_can_come(grammar_of: Any) -> None:
    constraint = grammar_of({"enum": [{"a": 1}]}).start()
    say(constraint, b'{"a":1}')
    assert constraint.is_done
    assert np.flatnonzero(constraint.mask()).tolist() == [END]


def test_a_number_may_end_or_go_on(grammar_of: Any) -> None:
    constraint = grammar_of({"type": "integer"}).start()
    say(constraint, b"12")
    mask = constraint.mask()
    assert not constraint.is_done
    assert mask[END]
    assert mask[ord("3")]
    assert not mask[ord(" ")]


def test_control_tokens_never_come_inside_strings(grammar_of: Any) -> None:
    constraint = grammar_of({"type": "string"}).start()
    say(constraint, b'"text')
    assert not constraint.mask()[[256, END]].any()


def test_forced_tokens_are_known_without_a_mask(grammar_of: Any) -> None:
    constraint = grammar_of(FLAG).start()
    said = bytearray()
    while constraint.forced is not None:
        assert np.flatnonzero(constraint.mask()).tolist() == [constraint.forced]
        said.append(constraint.forced)
        constraint.accept(constraint.forced)
    assert said == b'{"ok":'


def test_masks_made_in_another_thread_are_the_same(
    tokens: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(grammar, "SLOW_SECONDS", 0.0)
    source = "start: /[a-f]{3}[0-9]*/"
    with ThreadPoolExecutor(1) as executor:
        beside = LLGrammar(source, tokens, executor).start()
        alone = LLGrammar(source, tokens).start()
        for byte in b"abc42":
            assert (beside.mask() == alone.mask()).all()
            beside.accept(byte)
            alone.accept(byte)


def test_a_token_that_cannot_come_breaks_the_constraint(grammar_of: Any) -> None:
    constraint = grammar_of(FLAG).start()
    with pytest.raises(TooComplex):
        constraint.accept(ord("x"))


def test_a_broken_grammar_does_not_compile(tokens: Any) -> None:
    with pytest.raises(CompileError):
        LLGrammar("start: (", tokens)


# Numbers


def digits_after(text: bytes) -> Digits:
    digits = Digits([bytes([byte]) for byte in range(256)], np.array([], np.int64))
    digits.feed(text)
    return digits


@pytest.mark.parametrize(
    ("said", "ends"),
    [
        (b'{"a":1e12', True),
        (b"[1E-99", True),
        (b"1e9", False),
        (b"1" * LONGEST, True),
        (b"1" * 15, False),
        (b'"1e99', False),
        (b'"\\"1e99', False),
        (b'{"1e99":3', False),
        (b"[1e99,3", False),
    ],
)
def test_numbers_stay_within_doubles(said: bytes, ends: bool) -> None:
    mask = np.zeros(256, np.bool_)
    mask[list(b"0123456789,")] = True
    narrowed = digits_after(said).narrow(mask)
    assert narrowed[ord(",")]
    assert narrowed[ord("7")] == (not ends)


def test_the_schema_wins_over_the_limit() -> None:
    mask = np.zeros(256, np.bool_)
    mask[ord("7")] = True
    assert digits_after(b"1e55").narrow(mask)[ord("7")]


# Endless schemas


def test_endless_parts_become_false() -> None:
    endless = {"type": "object", "properties": {"n": {"$ref": "#/$defs/n"}}, "required": ["n"]}
    root = {
        "type": "object",
        "properties": {"a": {"$ref": "#/$defs/n"}, "b": {"anyOf": [{"$ref": "#/$defs/n"}, True]}},
    }
    pruned = finite(Document(root, {"n": endless}))
    assert pruned.root == {"type": "object", "properties": {"a": False, "b": {"anyOf": [True]}}}
    assert pruned.definitions == {"n": False}


@pytest.mark.parametrize(
    ("schema", "ends"),
    [
        ({"type": "array", "items": {"$ref": "#/$defs/x"}}, True),
        ({"type": "array", "items": {"$ref": "#/$defs/x"}, "minItems": 1}, False),
        ({"type": ["null", "array"], "items": {"$ref": "#/$defs/x"}, "minItems": 1}, True),
        ({"allOf": [{"$ref": "#/$defs/x"}, {}]}, False),
        ({"anyOf": [{"$ref": "#/$defs/x"}, {"type": "null"}]}, True),
    ],
)
def test_what_ends(schema: Any, ends: bool) -> None:
    document = finite(Document({"$ref": "#/$defs/x"}, {"x": schema}))
    assert (document.root is not False) == ends


# The last look


def looked_at(text: str, *, ended: bool, schema: Any = FLAG) -> None:
    stage = Validation(validator(schema), frozenset({END}))
    for char in text:
        assert list(stage.feed(Delta(char, tokens=(Token(1, char),))))
    if ended:
        stage.feed(Delta("", tokens=(Token(END, "", special=True),)))
    list(stage.finish())


@pytest.mark.parametrize(
    ("text", "ended"), [('{"ok":true}', True), ('{"ok":true}', False), ('{"ok', False), ("", False)]
)
def test_valid_answers_and_their_beginnings_pass(text: str, ended: bool) -> None:
    looked_at(text, ended=ended)


@pytest.mark.parametrize(
    ("text", "ended"), [('{"ok":1}', True), ('{"ok":1}', False), ('{"ok', True), ("", True)]
)
def test_wrong_answers_do_not_pass(text: str, ended: bool) -> None:
    with pytest.raises(WrongAnswer):
        looked_at(text, ended=ended)


def test_a_cut_number_may_be_too_small() -> None:
    at_least_ten = {"type": "integer", "minimum": 10}
    looked_at("1", ended=False, schema=at_least_ten)
    with pytest.raises(WrongAnswer):
        looked_at("1", ended=True, schema=at_least_ten)


# Analysts


async def test_an_analyst_that_takes_too_long_is_stopped_and_replaced() -> None:
    hostile: Any = {"type": "string"}
    for _ in range(12):
        hostile = {"not": {"anyOf": [hostile, {"type": "array", "items": hostile}]}}
    analysts = Analysts(seconds=0.5)
    try:
        with pytest.raises(TooLong):
            await analysts.schema(hostile)
        assert (await analysts.schema(True)).grammar is True
        with pytest.raises(Refused) as caught:
            await analysts.schema({"properties": {"a": False}, "required": ["a"], "type": "object"})
        assert caught.value.reason == "no value can fit this schema"
        both = await asyncio.gather(analysts.schema({}), analysts.schema({"type": "null"}))
        assert [analysis.promise for analysis in both] == [{}, {"type": "null"}]
    finally:
        await analysts.close()


# The cache


async def test_constraints_are_compiled_once_and_forgotten_in_turn() -> None:
    engine = ScriptedEngine()
    compiler = Compiler(StructuredSettings(cache_size=2))
    specs = [ConstraintSpec("regex", pattern) for pattern in "abc"]
    try:
        first, same = await asyncio.gather(*(compiler.compile(specs[0], engine) for _ in range(2)))
        assert first is same
        for spec in specs[1:]:
            await compiler.compile(spec, engine)
        assert await compiler.compile(specs[2], engine) is await compiler.compile(specs[2], engine)
        assert await compiler.compile(specs[0], engine) is not first
        with pytest.raises(InvalidRequest, match="'tools': a group"):
            await compiler.compile(ConstraintSpec("regex", "(", "tools"), engine)
    finally:
        await compiler.close()


async def test_whoever_leaves_does_not_take_the_others_along() -> None:
    compiler, engine = Compiler(StructuredSettings()), ScriptedEngine()
    spec = ConstraintSpec("json_schema", FLAG)
    try:
        leaving = asyncio.create_task(compiler.compile(spec, engine))
        staying = asyncio.create_task(compiler.compile(spec, engine))
        await asyncio.sleep(0)
        leaving.cancel()
        assert (await staying).start().is_done is False
    finally:
        await compiler.close()
