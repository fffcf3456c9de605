"""What may be called, and with which arguments."""

from __future__ import annotations

from typing import Any

import jsonschema_rs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hookline_tools.offer import bounded, closed

NUMBER = {"type": "number"}


def test_only_named_properties_are_left_also_below() -> None:
    inner = {"type": "object", "properties": {"x": NUMBER}}
    schema = {"type": "object", "properties": {"a": inner, "b": NUMBER}, "required": ["a"]}
    assert closed(schema) == {
        **schema,
        "additionalProperties": False,
        "properties": {"a": {**inner, "additionalProperties": False}, "b": NUMBER},
    }


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object"},
        {"type": "object", "properties": {}},
        {"type": "object", "properties": {"a": NUMBER}, "additionalProperties": NUMBER},
        {"type": "object", "properties": {"a": NUMBER}, "required": ["b"]},
        {"type": "object", "properties": {"a": NUMBER}, "allOf": [{"required": ["b"]}]},
        {"type": "object", "properties": {"a": NUMBER}, "minProperties": 2},
        {"type": "object", "properties": {"a": True}, "patternProperties": {"^x": NUMBER}},
        {"type": "object", "properties": ["a"]},
        {"type": "object", "properties": {"a": NUMBER}, "required": "a"},
        {"type": "object", "properties": {"a": NUMBER}, "required": [["a"]]},
        True,
    ],
)
def test_what_says_more_stays_open(schema: Any) -> None:
    assert closed(schema) == schema


values = st.recursive(
    st.integers(0, 2) | st.just("x"),
    lambda inner: st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=6,
)
schemas = st.recursive(
    st.sampled_from([True, NUMBER, {"type": "string"}]),
    lambda inner: st.fixed_dictionaries(
        {"properties": st.dictionaries(st.sampled_from("ab"), inner, max_size=2)},
        optional={
            "required": st.lists(st.sampled_from("abc"), unique=True, max_size=2),
            "additionalProperties": st.sampled_from([NUMBER, False, True]),
            "anyOf": st.lists(inner, min_size=1, max_size=2),
        },
    ),
    max_leaves=6,
)


@given(schemas, values)
def test_what_matches_the_closed_schema_matches_the_open_one(schema: Any, value: Any) -> None:
    if jsonschema_rs.is_valid(closed(schema), value):
        assert jsonschema_rs.is_valid(schema, value)


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"type": "string"}, {"type": "string", "maxLength": 9}),
        ({"type": "string", "maxLength": 50}, {"type": "string", "maxLength": 50}),
        ({"type": "string", "enum": ["a"]}, {"type": "string", "enum": ["a"]}),
        ({"type": "array"}, {"type": "array", "maxItems": 16}),
        (
            {"type": "array", "minItems": 20, "items": {"type": "string"}},
            {
                "type": "array",
                "minItems": 20,
                "maxItems": 20,
                "items": {"type": "string", "maxLength": 9},
            },
        ),
        (
            {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "number"}}},
            {
                "type": "object",
                "properties": {"a": {"type": "string", "maxLength": 9}, "b": {"type": "number"}},
            },
        ),
        ({"not": {"type": "string"}}, {"not": {"type": "string"}}),
        (True, True),
    ],
)
def test_bounded_schemas_only_narrow(schema: Any, expected: Any) -> None:
    assert bounded(schema, 9) == expected
