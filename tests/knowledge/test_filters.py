"""Filters by attributes."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from hookline_knowledge.filters import Filter, matches

HAS: dict[str, Any] = {"year": 2024, "name": "Ada", "open": True, "share": 0.5}
READ = TypeAdapter(Filter)


def passes(**wanted: Any) -> bool:
    return matches(READ.validate_python(wanted), HAS)


@pytest.mark.parametrize(
    ("kind", "key", "value", "passing"),
    [
        ("eq", "year", 2024, True),
        ("eq", "year", 2024.0, True),
        ("eq", "year", "2024", False),
        ("eq", "open", True, True),
        ("eq", "open", 1, False),
        ("eq", "missing", 1, False),
        ("ne", "year", 2024, False),
        ("ne", "missing", 1, True),
        ("gt", "year", 2023, True),
        ("gt", "year", 2024, False),
        ("gte", "year", 2024, True),
        ("lt", "share", 1, True),
        ("lte", "share", 0.4, False),
        ("gt", "name", "Aa", True),
        ("gt", "name", 5, False),
        ("lt", "open", 5, False),
        ("lt", "missing", 5, False),
        ("in", "name", ["Eve", "Ada"], True),
        ("in", "open", [1, 2], False),
        ("nin", "name", ["Eve", "Ada"], False),
        ("nin", "missing", ["Ada"], True),
    ],
)
def test_comparisons(kind: str, key: str, value: Any, passing: bool) -> None:
    assert passes(type=kind, key=key, value=value) is passing


def test_compounds() -> None:
    old = {"type": "lt", "key": "year", "value": 2000}
    ada = {"type": "eq", "key": "name", "value": "Ada"}
    assert passes(type="or", filters=[old, ada])
    assert not passes(type="and", filters=[old, ada])
    assert passes(type="and", filters=[{"type": "or", "filters": [old, ada]}, ada])


@pytest.mark.parametrize(
    "wrong",
    [
        {"type": "eq", "key": "a"},
        {"type": "eq", "key": 1, "value": 1},
        {"type": "eq", "key": "a", "value": [1]},
        {"type": "in", "key": "a", "value": 1},
        {"type": "gt", "key": "a", "value": True},
        {"type": "and", "filters": []},
        {"type": "like", "key": "a", "value": 1},
        {"type": "eq", "key": "a", "value": {"b": 1}},
        "eq",
        None,
    ],
)
def test_what_is_no_filter(wrong: Any) -> None:
    with pytest.raises(ValidationError):
        READ.validate_python(wrong)


def test_filters_are_not_nested_without_end() -> None:
    wanted: dict[str, Any] = {"type": "eq", "key": "a", "value": 1}
    for _ in range(40):
        wanted = {"type": "and", "filters": [wanted]}
    with pytest.raises(ValidationError, match="deep"):
        READ.validate_python(wanted)
