"""Schemas of every kind: what their grammars accept and refuse, and what walks through them say."""

from __future__ import annotations

from typing import Any

import pytest

from hookline_structured.analysis import analyse
from hookline_structured.canonical import validator
from hookline_structured.refusal import Refused

INTEGER = {"type": "integer"}


def an_object(properties: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, **more}


NODE = an_object(
    {"v": INTEGER, "next": {"anyOf": [{"$ref": "#/$defs/n"}, {"type": "null"}]}},
    required=["v", "next"],
    additionalProperties=False,
)
ENDLESS = an_object({"n": {"$ref": "#/$defs/n"}}, required=["n"])

RIGHT: dict[str, tuple[Any, list[Any], list[Any]]] = {
    "anything": (True, [1, {"a": [None]}, "é"], []),
    "nothing asked": ({}, [1, [], {}], []),
    "nullable": (
        an_object({"a": {"type": "string", "nullable": True}}, required=["a"]),
        [{"a": None}, {"a": "x"}],
        [{"a": 1}, {}],
    ),
    "definitions of draft 7": (
        {
            "$schema": "http://json-schema.org/draft-07/schema#",
            "definitions": {"x": {"type": "integer", "minimum": 3}},
            "$ref": "#/definitions/x",
        },
        [3],
        [2],
    ),
    "exclusive bounds of draft 4": (
        {
            "$schema": "http://json-schema.org/draft-04/schema#",
            **{"type": "integer", "minimum": 0, "exclusiveMinimum": True, "maximum": 5},
        },
        [1, 5],
        [0, 6],
    ),
    "tuple of draft 7": (
        {"type": "array", "items": [INTEGER, {"type": "string"}], "additionalItems": False},
        [[1, "a"], [1], []],
        [[1, "a", 2], ["a"]],
    ),
    "prefixItems": (
        {"type": "array", "prefixItems": [INTEGER], "items": {"type": "string"}, "minItems": 1},
        [[1], [1, "a", "b"]],
        [[], ["a"], [1, 2]],
    ),
    "enum of mixed types": (
        {"enum": [1, 2.0, "1", None, [1], {"a": 1}, True]},
        [1, 2, "1", None, [1], {"a": 1}, True],
        [3, [2], False],
    ),
    "enum beside other keywords": (
        {"enum": ["a", "abc", 5], "type": "string", "minLength": 2},
        ["abc"],
        ["a", 5],
    ),
    "tenths": ({"type": "number", "multipleOf": 0.1}, [0.1, 0.3, 0.7, -1.2, 5], [0.15]),
    "hundredths in a range": (
        {"type": "number", "multipleOf": 0.01, "minimum": 0, "maximum": 1},
        [0.07, 0.29, 0.57, 1],
        [1.01, -0.01],
    ),
    "exclusive bounds": (
        {"type": "number", "exclusiveMinimum": 0.1, "exclusiveMaximum": 0.2},
        [0.15],
        [0.1, 0.2],
    ),
    "excluded integer near the other bound": (
        {"type": "number", "exclusiveMinimum": 0, "maximum": 0.5},
        [0.5, 0.001],
        [0, 0.0, -0.0, 0.6],
    ),
    "excluded zero above": (
        {"type": "number", "minimum": -0.25, "exclusiveMaximum": 0},
        [-0.25, -0.01],
        [0, -0.0, -0.3],
    ),
    "exponents": ({"type": "number"}, [1e5, 1e-7, 1e20, -0.0], []),
    "pattern with lengths": (
        {"type": "string", "pattern": "^[a-z]+$", "minLength": 2, "maxLength": 4},
        ["ab", "abcd"],
        ["a", "abcde", "AB"],
    ),
    "pattern anywhere": ({"type": "string", "pattern": "b"}, ["abc", "b"], ["a", ""]),
    "pattern anchored on one side each": (
        {"type": "string", "pattern": "^a|b$"},
        ["ac", "cb", "a"],
        ["cac"],
    ),
    "length counts characters": (
        {"type": "string", "minLength": 1, "maxLength": 1},
        ["😀", "a", "\n"],
        ["", "ab", "😀😀"],
    ),
    "patternProperties": (
        {
            "type": "object",
            "properties": {"ab": {"minimum": 3}},
            "patternProperties": {"^a": INTEGER},
            "additionalProperties": {"type": "string"},
        },
        [{"ab": 3}, {"ab": 3, "ac": 1}, {"z": "q"}],
        [{"ab": 2}, {"ab": 3.5}, {"z": 1}, {"ac": "x"}],
    ),
    "at least one property of any name": (
        {"type": "object", "additionalProperties": INTEGER, "minProperties": 1},
        [{"a": 1}],
        [{}, {"a": "x"}],
    ),
    "at least two of three": (
        an_object(dict.fromkeys("abc", INTEGER), minProperties=2, additionalProperties=False),
        [{"a": 1, "b": 2}, {"b": 1, "c": 1}],
        [{"a": 1}, {}],
    ),
    "at most one of three": (
        an_object(dict.fromkeys("abc", INTEGER), maxProperties=1, additionalProperties=False),
        [{"a": 1}, {}, {"c": 1}],
        [{"a": 1, "b": 1}],
    ),
    "at most two, open": (
        an_object({"a": INTEGER}, maxProperties=2),
        [{"a": 1, "b": 2}, {"x": 1, "y": 1}, {}],
        [{"a": 1, "b": 1, "c": 1}],
    ),
    "unique choices": (
        {
            "$defs": {"c": {"enum": ["a", "b", "c"]}},
            **{"type": "array", "items": {"$ref": "#/$defs/c"}, "uniqueItems": True, "minItems": 1},
        },
        [["a"], ["c", "a"], ["a", "b", "c"]],
        [["a", "a"], []],
    ),
    "unique choices of many": (
        {"type": "array", "items": {"enum": list("abcdefgh")}, "uniqueItems": True},
        [[], ["a", "c"], list("abcdefgh")],
        [["a", "a"]],
    ),
    "names by pattern": (
        an_object({"A": INTEGER, "a": {"type": "string"}}, propertyNames={"pattern": "^[a-z]+$"}),
        [{"a": "x"}, {"b": 1}],
        [{"A": 1}, {"a": 1}],
    ),
    "names from a list": (
        {"type": "object", "propertyNames": {"enum": ["a", "b"]}, "additionalProperties": INTEGER},
        [{"a": 1, "b": 2}, {}],
        [{"c": 1}, {"a": "x"}],
    ),
    "dependencies": (
        an_object(dict.fromkeys("ab", INTEGER), dependencies={"a": ["b"]}),
        [{"a": 1, "b": 1}, {"b": 1}, {}],
        [{"a": 1}],
    ),
    "dependentSchemas": (
        an_object({"a": INTEGER}, dependentSchemas={"a": {"required": ["c"]}}),
        [{"a": 1, "c": 2}, {}],
        [{"a": 1}],
    ),
    "if, then": (
        an_object(
            {"k": {"enum": ["x", "y"]}, "v": {}},
            required=["k"],
            **{
                "if": {"properties": {"k": {"const": "x"}}},
                "then": {"properties": {"v": INTEGER}, "required": ["v"]},
            },
        ),
        [{"k": "x", "v": 1}, {"k": "y"}],
        [{"k": "x"}, {"k": "x", "v": "s"}],
    ),
    "oneOf told apart": (
        {
            "oneOf": [
                an_object({"t": {"const": "a"}, "x": INTEGER}, required=["t", "x"]),
                an_object({"t": {"const": "b"}}, required=["t"]),
            ]
        },
        [{"t": "a", "x": 1}, {"t": "b"}],
        [{"t": "a"}, {"t": "c"}],
    ),
    "not": ({"not": {"type": "null"}}, [1, "a"], [None]),
    "allOf": (
        {
            "allOf": [
                an_object({"a": INTEGER}, required=["a"]),
                an_object({"b": {"type": "string"}}, required=["b"]),
            ]
        },
        [{"a": 1, "b": "x"}],
        [{"a": 1}, {"a": 1, "b": 2}],
    ),
    "unevaluatedProperties": (
        {
            "allOf": [an_object({"a": INTEGER})],
            **an_object({"b": INTEGER}, unevaluatedProperties=False),
        },
        [{"b": 2}, {"a": 1, "b": 2}],
        [{"c": 1}],
    ),
    "recursion": (
        {"$defs": {"n": NODE}, "$ref": "#/$defs/n"},
        [{"v": 1, "next": {"v": 2, "next": None}}],
        [{"v": 1}],
    ),
    "endless parts are left out": (
        {"$defs": {"n": ENDLESS}, **an_object({"a": INTEGER, "b": {"$ref": "#/$defs/n"}})},
        [{"a": 1}, {}],
        [{"b": {}}],
    ),
    "anchor": (
        {"$defs": {"a": {"$anchor": "foo", "type": "integer"}}, "$ref": "#foo"},
        [1],
        ["a"],
    ),
    "reference by the schema's own address": (
        {"$id": "https://e.com/s", "$defs": {"a": INTEGER}, "$ref": "https://e.com/s#/$defs/a"},
        [1],
        ["a"],
    ),
    "strange names": (
        an_object({'a"\\b\n': INTEGER, "": INTEGER}, required=["", 'a"\\b\n']),
        [{'a"\\b\n': 1, "": 2}],
        [{"": 2}],
    ),
    "days that exist": (
        {"type": "string", "format": "date"},
        ["2024-02-29", "2000-02-29", "2023-12-31"],
        ["2023-02-29", "1900-02-29", "2023-13-01"],
    ),
    "unknown format": ({"type": "string", "format": "int32"}, ["", "x"], [1]),
    "no type": (
        {"properties": {"a": INTEGER}, "required": ["a"]},
        [{"a": 1}, 5, "x"],
        [{"a": "x"}, {}],
    ),
    "options of the compiler are not the client's": (
        {"type": "integer", "x-guidance": {"lenient": True}, "minimum": 3},
        [3],
        [2],
    ),
}

REFUSED: dict[str, tuple[Any, tuple[str | int, ...], str]] = {
    "no schema": ("string", (), "object or a boolean"),
    "unknown type": (an_object({"a": {"type": "objekt"}}), ("properties", "a", "type"), "objekt"),
    "false": (False, (), "no value"),
    "contradiction": ({"type": "integer", "minimum": 2, "maximum": 1}, (), "no value"),
    "no multiple in the range": (
        {"type": "integer", "minimum": 1, "maximum": 2, "multipleOf": 5},
        (),
        "no value",
    ),
    "remote": (an_object({"a": {"$ref": "http://x.y/z"}}), ("properties", "a", "$ref"), "inside"),
    "dangling": ({"$ref": "#/$defs/a"}, ("$ref",), "points at nothing"),
    "broken pattern": (
        an_object({"a": {"type": "string", "pattern": "(["}}),
        ("properties", "a", "pattern"),
        "regex",
    ),
    "look-ahead": (
        {"type": "array", "items": {"type": "string", "pattern": "^(?!x)"}},
        ("items", "pattern"),
        "look-around",
    ),
    "dynamic reference": ({"$dynamicRef": "#a"}, ("$dynamicRef",), "$ref"),
    "unique strings": (
        {"type": "array", "items": {"type": "string"}, "uniqueItems": True},
        ("uniqueItems",),
        "enum",
    ),
    "contains": ({"type": "array", "contains": {"const": 1}}, ("contains",), "cannot"),
    "overlapping oneOf": (
        {"oneOf": [{"type": "integer", "multipleOf": 2}, {"type": "integer", "multipleOf": 3}]},
        ("oneOf", 1),
        "exclude each other",
    ),
    "two properties of any name": (
        {"type": "object", "minProperties": 2},
        ("minProperties",),
        "more than one",
    ),
    "overlapping patterns": (
        an_object(
            {"a": {"type": "object", "patternProperties": {"^a": INTEGER, "b$": {"minimum": 3}}}}
        ),
        ("properties", "a"),
        "disjoint",
    ),
    "only endless documents": (
        {"$defs": {"n": ENDLESS}, "$ref": "#/$defs/n"},
        (),
        "no value can fit",
    ),
    "a circle of references": (
        {"$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}, "$ref": "#/$defs/a"},
        (),
        "no value can fit",
    ),
    "integer beyond doubles": ({"const": 12345678901234567890}, ("const",), "2^53"),
    "constant with control characters": ({"const": "a\u0001"}, ("const",), "control"),
    "half a surrogate pair": ({"const": "\ud800"}, (), "surrogate"),
    "unknown draft": ({"$schema": "https://e.com/draft"}, ("$schema",), "draft"),
}


@pytest.mark.parametrize("name", RIGHT)
def test_accepts_what_is_valid_and_nothing_else(name: str, grammar_of: Any, accepts: Any) -> None:
    schema, valid, invalid = RIGHT[name]
    judge = validator(analyse(schema).promise)
    assert [judge.is_valid(v) for v in valid + invalid] == [True] * len(valid) + [False] * len(
        invalid
    )
    grammar = grammar_of(schema)
    assert [value for value in valid if not accepts(grammar, value)] == []
    assert [value for value in invalid if accepts(grammar, value)] == []


@pytest.mark.parametrize("name", RIGHT)
def test_walks_end_in_valid_documents(name: str, grammar_of: Any, walk: Any, chance: Any) -> None:
    schema = RIGHT[name][0]
    judge = validator(analyse(schema).promise)
    grammar = grammar_of(schema)
    documents = [walk(grammar, chance(seed)) for seed in range(6)]
    ended = [document for document in documents if document is not ...]
    assert ended, "no walk came to an end"
    assert [document for document in ended if not judge.is_valid(document)] == []


@pytest.mark.parametrize("name", REFUSED)
def test_refuses_with_the_place(name: str) -> None:
    schema, place, reason = REFUSED[name]
    with pytest.raises(Refused) as caught:
        analyse(schema)
    assert caught.value.place == place
    assert reason in caught.value.reason


def test_properties_come_in_the_order_of_the_schema(grammar_of: Any) -> None:
    grammar = grammar_of(an_object({"z": INTEGER, "a": INTEGER}, required=["a", "z"]))
    assert grammar.completes(list(b'{"z":1,"a":2}'))
    assert not grammar.completes(list(b'{"a":2,"z":1}'))


def test_the_canonical_form_keeps_the_order_too(grammar_of: Any) -> None:
    schema = an_object({"z": INTEGER, "a": INTEGER}, dependentRequired={"z": ["a"]})
    assert grammar_of(schema).completes(list(b'{"z":1,"a":2}'))


def test_a_name_cannot_be_spelled_in_another_way(grammar_of: Any) -> None:
    grammar = grammar_of(an_object({"a": INTEGER}))
    assert not grammar.completes(list(rb'{"\u0061":"text"}'))


@pytest.mark.parametrize(
    "schema", [{"type": "array", "items": {}}, {"properties": {"a": {"type": "string"}}}]
)
@pytest.mark.parametrize("depth", [40, 3000])
def test_nesting_is_limited(schema: dict[str, Any], depth: int) -> None:
    for _ in range(depth):
        schema = {"type": "array", "items": schema}
    if depth == 40:
        analyse(schema)
    else:
        with pytest.raises((Refused, RecursionError)):
            analyse(schema)
