"""How the compiler writes JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, cast

import llguidance

from hookline_structured.dialect import Schema

if TYPE_CHECKING:
    from llguidance._lib import JsonCompileOptions

ESCAPES = 'nrbtf\\"'
r"""The escapes in strings. Without ``\u``: with it a key could be written in a second way
(``"\u0061"`` for ``"a"``) and get past the schema of its property. What only ``\u`` can write
are control characters."""

SPACE = r"\x20|\n\x20{0,16}"
"""White space between tokens where it is allowed: one space, or a new line with indentation."""

_OPTIONS: Mapping[str, str | bool] = MappingProxyType(
    {
        "whitespace_flexible": False,
        "json_allowed_escapes": ESCAPES,
        "lenient": False,
        "coerce_one_of": False,
        "json_allow_general_unicode_escapes": False,
    }
)


def json_options(*, compact: bool) -> dict[str, Any]:
    """The compiler's options."""
    return dict(_OPTIONS) if compact else {**_OPTIONS, "whitespace_pattern": SPACE}


def json_source(schema: Schema, *, compact: bool) -> str:
    """A rewritten schema in the compiler's own language."""
    options = cast("JsonCompileOptions", json_options(compact=compact))
    text = json.dumps({} if schema is True else schema, ensure_ascii=False)
    return str(llguidance.LLMatcher.grammar_from_json_schema(text, overrides=options))
