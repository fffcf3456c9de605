"""The request field ``response_format``."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Literal

from pydantic import BaseModel, Field, JsonValue

from hookline import ConstraintSpec, InvalidRequest
from hookline_structured.refusal import Place, Refused, path

PARAM = "response_format"
ANY_OBJECT: Mapping[str, Any] = MappingProxyType({"type": "object"})
Kind = Literal["json_schema", "regex", "grammar"]

_WORDS = MappingProxyType({bool: "boolean", str: "string"})
_KINDS = "'text', 'json_object', 'json_schema', 'regex' or 'grammar'"


class StructuredFields(BaseModel):
    """What the plugin adds to a chat request."""

    response_format: dict[str, JsonValue] | None = Field(
        None,
        description=(
            'The form of the answer: {"type": "text"}, {"type": "json_object"}, '
            '{"type": "json_schema", "json_schema": {"name", "schema"}}, '
            '{"type": "regex", "pattern"} or {"type": "grammar", "grammar"} (Lark). '
            "Always enforced."
        ),
    )


def constraint_of(response_format: dict[str, Any] | None) -> ConstraintSpec | None:
    """The constraint that is asked for; None for free text. Raises InvalidRequest."""
    try:
        return None if response_format is None else _read(response_format)
    except Refused as error:
        raise InvalidRequest(error.message(PARAM), param=PARAM) from None


def _read(asked: dict[str, Any]) -> ConstraintSpec | None:
    match asked.get("type"):
        case "text":
            return None
        case "json_object":
            return _spec("json_schema", dict(ANY_OBJECT), ())
        case "json_schema":
            return _spec("json_schema", _schema(asked), ("json_schema", "schema"))
        case "regex":
            return _text("regex", asked, "pattern")
        case "grammar":
            return _text("grammar", asked, "grammar")
    raise Refused(("type",), f"must be {_KINDS}")


def _schema(asked: dict[str, Any]) -> Any:
    about = asked.get("json_schema")
    if not isinstance(about, dict):
        raise Refused(("json_schema",), 'must be an object such as {"name": …, "schema": {…}}')
    for key, kind in (("strict", bool), ("name", str), ("description", str)):
        if not isinstance(about.get(key), kind | None):
            raise Refused(("json_schema", key), f"must be a {_WORDS[kind]}")
    if about.get("schema") is None:
        raise Refused(("json_schema", "schema"), "is missing")
    return about["schema"]


def _text(kind: Literal["regex", "grammar"], asked: dict[str, Any], key: str) -> ConstraintSpec:
    if not isinstance(asked.get(key), str):
        raise Refused((key,), "must be a string")
    return _spec(kind, asked[key], (key,))


def _spec(kind: Kind, value: Any, place: Place) -> ConstraintSpec:
    return ConstraintSpec(kind, value, PARAM, {"place": path(PARAM, place)})
