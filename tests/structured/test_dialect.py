"""Schemas of every draft become one dialect."""

from __future__ import annotations

from typing import Any

import pytest

from hookline_structured.dialect import DEEPEST, LONGEST, MOST, read
from hookline_structured.refusal import Refused, path


@pytest.mark.parametrize(
    ("schema", "plain"),
    [
        ({"type": "string", "title": "T", "x-y": 1, "default": "a"}, {"type": "string"}),
        ({"type": "string", "format": "byte"}, {"type": "string"}),
        ({"format": "date"}, {"format": "date"}),
        ({"type": "integer", "nullable": True}, {"type": ["integer", "null"]}),
        ({"type": "integer", "nullable": False}, {"type": "integer"}),
        (
            {"minimum": 1, "exclusiveMinimum": True},
            {"minimum": 1, "exclusiveMinimum": 1},
        ),
        ({"minimum": 1, "exclusiveMinimum": False}, {"minimum": 1}),
        ({"maximum": 1, "exclusiveMaximum": 3}, {"maximum": 1, "exclusiveMaximum": 3}),
        (
            {"items": [True], "additionalItems": False},
            {"prefixItems": [True], "items": False},
        ),
        ({"items": True, "additionalItems": False}, {"items": True}),
        (
            {"dependencies": {"a": ["b"], "c": {"required": ["d"]}}},
            {"dependentRequired": {"a": ["b"]}, "dependentSchemas": {"c": {"required": ["d"]}}},
        ),
        ({"properties": {"title": {"title": "x"}}}, {"properties": {"title": {}}}),
    ],
)
def test_keywords(schema: Any, plain: Any) -> None:
    assert read(schema).root == plain


def test_references_point_into_one_flat_list_of_definitions() -> None:
    schema = {
        "definitions": {"a/b": {"type": "string"}, "unused": {"type": "null"}},
        "properties": {
            "x": {"$ref": "#/definitions/a~1b"},
            "y": {"$ref": "#/properties/x"},
            "z": {"$ref": "#"},
        },
    }
    document = read(schema)
    assert document.root == {
        "properties": {name: {"$ref": f"#/$defs/d{i}"} for i, name in enumerate("xyz")}
    }
    assert document.definitions["d0"] == {"type": "string"}
    assert document.definitions["d1"] == {"$ref": "#/$defs/d0"}
    assert document.definitions["d2"] == document.root
    assert document.places["d0"] == ("definitions", "a/b")


@pytest.mark.parametrize(
    ("schema", "place"),
    [
        ({"items": 5}, ("items",)),
        ({"anyOf": {}}, ("anyOf",)),
        ({"properties": []}, ("properties",)),
        ({"dependencies": []}, ("dependencies",)),
        ({"$ref": 5}, ("$ref",)),
        ({"$ref": "#/nowhere"}, ("$ref",)),
        ({"$ref": "#nowhere"}, ("$ref",)),
        ({"$ref": "other.json"}, ("$ref",)),
        ({"items": {"$id": "http://e.com/x", "items": {"$ref": "#"}}}, ("items", "items", "$ref")),
    ],
)
def test_refuses_with_the_place(schema: Any, place: Any) -> None:
    with pytest.raises(Refused) as caught:
        read(schema)
    assert caught.value.place == place


def test_size_and_depth_are_limited() -> None:
    deep: Any = {}
    for _ in range(DEEPEST + 1):
        deep = {"items": deep}
    schemas: list[Any] = [deep, {"anyOf": [{}] * MOST}, {"title": "x" * LONGEST}]
    for schema in schemas:
        with pytest.raises(Refused, match=r"nested|large|bytes"):
            read(schema)


def test_a_place_is_written_as_a_path() -> None:
    assert path("a.b", ("c", 0, "d")) == "a.b.c[0].d"
    assert len(path("a", ("x" * 1000,))) == 300
