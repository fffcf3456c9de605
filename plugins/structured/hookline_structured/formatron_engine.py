"""formatron as the engine, for the few schemas that it was measured to get right.

It writes the grammar, kbnf follows it. Two things are taken out of formatron's grammar: white space
without bounds, and escapes of single surrogates.
"""

from __future__ import annotations

import copy
import re
import sys
import typing
from typing import Any

import numpy as np

from hookline_structured.dialect import Schema
from hookline_structured.digits import Digits, Mask
from hookline_structured.tokens import Tokens

_PLAIN_TYPES = ("string", "integer", "number", "boolean", "null")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_WORDS = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_ -]*")
_SPACE = "[ \t\n]*"
_ESCAPES = r"|\\\\u[0-9A-Fa-f]{4}"
_IDENTITY = {
    "$id": "urn:hookline:schema",
    "$schema": "https://json-schema.org/draft/2020-12/schema",
}


def within(schema: Schema) -> bool:
    """Whether this is a closed object of plain values, all required, all the way down."""
    return isinstance(schema, dict) and schema.get("type") == "object" and _is_right(schema)


def _is_right(schema: Schema) -> bool:
    if isinstance(schema, bool):
        return False
    keys = schema.keys()
    if schema.get("type") == "object":
        return _is_right_object(schema)
    if schema.get("type") == "array":
        return keys == {"type", "items"} and _is_right(schema["items"])
    if "enum" in keys:
        texts = all(isinstance(v, str) and _WORDS.fullmatch(v) for v in schema["enum"])
        return texts and keys <= {"type", "enum"} and schema.get("type", "string") == "string"
    return keys == {"type"} and schema["type"] in _PLAIN_TYPES


def _is_right_object(schema: dict[str, Any]) -> bool:
    properties = schema.get("properties", {})
    return (
        schema.keys() == {"type", "properties", "required", "additionalProperties"}
        and bool(properties)
        and schema["additionalProperties"] is False
        and set(schema["required"]) == properties.keys()
        and all(map(_NAME.fullmatch, properties))
        and all(map(_is_right, properties.values()))
    )


def source(schema: dict[str, Any]) -> str:
    """The grammar that formatron writes for a schema, compact."""
    formatter, schemas = _formatron()
    builder = formatter.FormatterBuilder()
    document = schemas.create_schema({**schema, **_IDENTITY})
    builder.append_str(f"{builder.json(document)}")
    grammar: str = builder.build(
        _vocabulary([bytes([byte]) for byte in range(256)]), lambda _: ""
    ).grammar_str
    return grammar.replace(_SPACE, "").replace(_ESCAPES, "")


def _formatron() -> tuple[Any, Any]:
    """formatron imports a name that pydantic had before version 2.12."""
    import pydantic

    if not hasattr(pydantic, "typing"):
        pydantic.typing = typing
        sys.modules.setdefault("pydantic.typing", typing)
    from formatron import formatter
    from formatron.schemas import json_schema

    return formatter, json_schema


def _vocabulary(tokens: list[bytes]) -> Any:
    import kbnf

    named = {i: raw for i, raw in enumerate(tokens) if raw}
    return kbnf.Vocabulary(
        {i: kbnf.Token(raw) for i, raw in named.items()},
        {i: raw.decode(errors="replace") for i, raw in named.items()},
    )


def compile_grammar(grammar: str, tokens: list[bytes]) -> Any:
    """kbnf's engine. May take seconds; raises ValueError."""
    import kbnf

    return kbnf.Engine(grammar, _vocabulary(tokens))


class FormatronGrammar:
    """A grammar over one vocabulary, shared by any number of answers."""

    def __init__(self, grammar: str, tokens: Tokens) -> None:
        self.end = tokens.end
        self._tokens = tokens
        self._engine = compile_grammar(grammar, tokens.texts())

    def start(self) -> FormatronConstraint:
        """A fresh constraint for one answer."""
        return FormatronConstraint(copy.copy(self._engine), self._tokens)


class FormatronConstraint:
    """What may come next in one answer."""

    def __init__(self, engine: Any, tokens: Tokens) -> None:
        self._engine = engine
        self._tokens = tokens
        self._digits = Digits(tokens.raw, tokens.overflowing)
        self.forced: int | None = None

    def mask(self) -> Mask:
        """True for each token that may come next."""
        mask = np.zeros(self._tokens.size, np.bool_)
        self._engine.compute_allowed_token_ids()
        mask[list(self._engine.get_allowed_token_ids_from_last_computation())] = True
        return self._digits.narrow(mask)

    def accept(self, token: int) -> None:
        """Takes the token that was sampled."""
        self._engine.try_accept_new_token(token)
        self._digits.feed(self._tokens.raw[token])

    def try_accept(self, token: int) -> bool:
        """Takes a token if it can come; whether it can."""
        can = not self.is_done and bool(self.mask()[token])
        if can:
            self.accept(token)
        return can

    @property
    def is_done(self) -> bool:
        """Whether the document is complete."""
        return bool(self._engine.is_finished())
