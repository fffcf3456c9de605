"""Metadata of collections and attributes of files: OpenAI's pairs of a key and a value."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, Strict

MOST_PAIRS = 16
LONGEST_KEY = 64
LONGEST_VALUE = 512


def _within_limits(pairs: Any) -> Any:
    """Refuses what is too much, with the key and all limits; types are checked after it."""
    if isinstance(pairs, Mapping) and (problem := _problem(pairs)):
        raise ValueError(
            f"{problem}; there can be {MOST_PAIRS} keys of 1 to {LONGEST_KEY} characters, and "
            f"values of at most {LONGEST_VALUE}"
        )
    return pairs


def _problem(pairs: Mapping[Any, Any]) -> str | None:
    if len(pairs) > MOST_PAIRS:
        return f"{len(pairs)} keys are too many"
    for key, value in pairs.items():
        if not 1 <= len(key) <= LONGEST_KEY:
            return f"the key '{key[:LONGEST_KEY]}' has {len(key)} characters"
        if isinstance(value, str) and len(value) > LONGEST_VALUE:
            return f"the value of '{key}' has {len(value)} characters"
    return None


Key = Annotated[str, Field(min_length=1, max_length=LONGEST_KEY)]
Text = Annotated[str, Field(max_length=LONGEST_VALUE)]
Value = Annotated[bool, Strict()] | Annotated[int, Strict()] | Annotated[float, Strict()] | Text
Metadata = Annotated[dict[Key, Text], Field(max_length=MOST_PAIRS), BeforeValidator(_within_limits)]
AttributeMap = Annotated[
    dict[Key, Value], Field(max_length=MOST_PAIRS), BeforeValidator(_within_limits)
]
