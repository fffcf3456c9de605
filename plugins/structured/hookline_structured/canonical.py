"""The set algebra of schemas, from jsonschema-rs: equivalents and proofs.

These calls can take arbitrarily long and hold the interpreter's lock: only the analyst's own
process makes them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import jsonschema_rs

from hookline_structured.dialect import Document, Schema, read

DRAFT = 20
"""Draft 2020-12, as jsonschema-rs counts."""


def satisfiable(document: Document) -> bool:
    """False where it is proved that no value fits."""
    schema = jsonschema_rs.canonicalize(document.whole(), draft=DRAFT, validate_formats=True)
    return schema.satisfiability() != jsonschema_rs.canonical.Satisfiability.NO


def disjoint(left: Schema, right: Schema, definitions: Mapping[str, Schema]) -> bool:
    """True where it is proved that no value fits both."""
    both = {"allOf": [left, right], "$defs": dict(definitions)}
    schema = jsonschema_rs.canonicalize(both, draft=DRAFT, validate_formats=True)
    return schema.satisfiability() == jsonschema_rs.canonical.Satisfiability.NO


def fits(schema: Schema, value: Any, definitions: Mapping[str, Schema]) -> bool:
    """Whether a value is valid, formats included."""
    if isinstance(schema, bool):
        return schema
    return validator({**schema, "$defs": dict(definitions)}).is_valid(value)


def validator(schema: Schema) -> jsonschema_rs.Validator:
    """What decides whether an answer is valid. Raises jsonschema_rs.ValidationError."""
    return jsonschema_rs.Draft202012Validator(schema, validate_formats=True, offline=True)


def equivalent(document: Document) -> Document:
    """The document in canonical form, with properties in the order of their first mention."""
    schema = jsonschema_rs.canonicalize(
        document.whole(), draft=DRAFT, validate_formats=True
    ).to_json_schema()
    rank = {
        name: place for place, name in enumerate(dict.fromkeys(property_names(document.whole())))
    }
    return read(_ordered(schema, rank))


def property_names(schema: Any) -> Iterator[str]:
    """Property names in the order in which the document mentions them."""
    if isinstance(schema, dict):
        for key, value in schema.items():
            if key == "properties" and isinstance(value, dict):
                yield from value
            if key not in ("enum", "const"):
                yield from property_names(value)
    elif isinstance(schema, list):
        for value in schema:
            yield from property_names(value)


def _ordered(schema: Any, rank: Mapping[str, int]) -> Any:
    if isinstance(schema, list):
        return [_ordered(item, rank) for item in schema]
    if not isinstance(schema, dict):
        return schema
    result = {
        key: value if key in ("enum", "const") else _ordered(value, rank)
        for key, value in schema.items()
    }
    if isinstance(result.get("properties"), dict):
        names = sorted(result["properties"], key=lambda name: rank.get(name, len(rank)))
        result["properties"] = {name: result["properties"][name] for name in names}
    return result
