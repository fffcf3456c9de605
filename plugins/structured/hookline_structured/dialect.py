"""Schemas of every draft, and OpenAPI's, as one dialect: a plain subset of draft 2020-12.

The result means the same as what came in, and is what answers are validated against. Its
references are all local and point into one flat ``$defs``. What JSON Schema calls annotations, and
keywords that nobody knows, are gone.

Where a keyword stands in a draft that did not have it yet, it is taken to mean what it means in
the others: more is enforced then than asked, never less.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

from hookline_structured.formats import PATTERNS
from hookline_structured.refusal import Place, Refused

Schema = dict[str, Any] | bool

DEEPEST = 48
"""Schemas inside schemas."""

MOST = 20_000
"""Schemas in a document, counted where they stand."""

LONGEST = 1_000_000
"""Characters of a document as JSON."""

_ONE = (
    *("additionalProperties", "contains", "not", "if", "then", "else", "propertyNames"),
    *("unevaluatedProperties", "unevaluatedItems"),
)
_MANY = ("allOf", "anyOf", "oneOf", "prefixItems")
_NAMED = ("properties", "patternProperties", "dependentSchemas")
_PLAIN = (
    *("type", "enum", "const", "multipleOf", "maximum", "minimum", "maxLength", "minLength"),
    *("pattern", "maxItems", "minItems", "uniqueItems", "maxContains", "minContains"),
    *("maxProperties", "minProperties", "required", "dependentRequired"),
)
_ELSEWHERE = ("$dynamicRef", "$recursiveRef")


@dataclass(slots=True)
class Document:
    """A schema in the dialect, and where each of its definitions came from."""

    root: Schema
    definitions: dict[str, Schema] = field(default_factory=dict)
    places: dict[str, Place] = field(default_factory=dict)

    def whole(self, schema: Schema | None = None) -> Schema:
        """One schema that can be used alone: the root, or another one, with the definitions."""
        schema = self.root if schema is None else schema
        if not self.definitions or isinstance(schema, bool):
            return schema
        return {**schema, "$defs": self.definitions}


def read(schema: Any) -> Document:
    """A client's schema in the dialect. Raises Refused."""
    try:
        size = len(json.dumps(schema, ensure_ascii=False).encode())
    except UnicodeEncodeError as error:
        raise Refused((), "the schema holds half a surrogate pair") from error
    except RecursionError as error:
        raise Refused((), "the schema is nested too deeply") from error
    if size > LONGEST:
        raise Refused((), f"the schema has more than {LONGEST} bytes")
    return _Reader(schema).document()


class _Reader:
    """Reads one document; definitions are read when something points at them."""

    def __init__(self, schema: Any) -> None:
        self._schema = schema
        self._count = 0
        self._names: dict[str, str] = {}
        self._waiting: list[tuple[str, Place, Any]] = []
        self._id = _identifier(schema) if isinstance(schema, dict) else ""

    def document(self) -> Document:
        document = Document(self._read(self._schema, (), 0, own=True))
        while self._waiting:
            name, place, schema = self._waiting.pop()
            document.places[name] = place
            document.definitions[name] = self._read(schema, place, 0, own=True)
        return document

    def _read(self, schema: Any, place: Place, depth: int, own: bool) -> Schema:
        """``own``: whether references here start from the whole document."""
        self._count += 1
        if self._count > MOST or depth > DEEPEST:
            raise Refused(place, "the schema is too large or nested too deeply")
        if isinstance(schema, bool):
            return schema
        if not isinstance(schema, dict):
            raise Refused(place, "a schema must be an object or a boolean")
        own = own and not (place and _identifier(schema))
        result: dict[str, Any] = {}
        for key, value in schema.items():
            for name, read in self._keyword(key, value, schema, place, depth, own):
                result[name] = read
        return result

    def _keyword(
        self, key: str, value: Any, schema: Mapping[str, Any], place: Place, depth: int, own: bool
    ) -> Iterator[tuple[str, Any]]:
        """What a keyword becomes: a few keywords, or nothing."""
        here = (*place, key)
        if key in ("$ref", *_ELSEWHERE):
            yield "$ref", f"#/$defs/{self._definition(key, value, here, own)}"
        elif key in _ONE:
            yield key, self._read(value, here, depth + 1, own)
        elif key in _MANY:
            yield key, self._list(value, here, depth, own)
        elif key in _NAMED:
            yield key, self._named(value, here, depth, own)
        elif key in ("items", "additionalItems"):
            yield from self._items(key, value, schema, here, depth, own)
        elif key == "dependencies":
            yield from self._dependencies(value, here, depth, own)
        else:
            yield from _assertion(key, value, schema)

    def _list(self, value: Any, place: Place, depth: int, own: bool) -> list[Schema]:
        if not isinstance(value, list):
            raise Refused(place, "must be a list of schemas")
        return [self._read(v, (*place, i), depth + 1, own) for i, v in enumerate(value)]

    def _named(self, value: Any, place: Place, depth: int, own: bool) -> dict[str, Schema]:
        if not isinstance(value, dict):
            raise Refused(place, "must be an object of schemas")
        return {k: self._read(v, (*place, k), depth + 1, own) for k, v in value.items()}

    def _items(
        self, key: str, value: Any, schema: Mapping[str, Any], place: Place, depth: int, own: bool
    ) -> Iterator[tuple[str, Any]]:
        """A list under ``items`` is older drafts' word for ``prefixItems``."""
        tuples = isinstance(schema.get("items"), list)
        if key == "items" and tuples:
            yield "prefixItems", self._list(value, place, depth, own)
        elif key == "items" or tuples:
            yield "items", self._read(value, place, depth + 1, own)

    def _dependencies(
        self, value: Any, place: Place, depth: int, own: bool
    ) -> Iterator[tuple[str, Any]]:
        if not isinstance(value, dict):
            raise Refused(place, "must be an object")
        names = {k: v for k, v in value.items() if isinstance(v, list)}
        schemas = {k: v for k, v in value.items() if k not in names}
        if names:
            yield "dependentRequired", names
        if schemas:
            yield "dependentSchemas", self._named(schemas, place, depth, own)

    def _definition(self, key: str, reference: Any, place: Place, own: bool) -> str:
        """The name of the definition that a reference points at; read later."""
        if key != "$ref":
            raise Refused(place, f"'{key}' is not supported; use '$ref'")
        if not isinstance(reference, str):
            raise Refused(place, "a reference must be a string")
        if self._id and reference.startswith(f"{self._id}#"):
            reference = reference.removeprefix(self._id)
        if not reference.startswith("#"):
            raise Refused(place, "only references inside the schema ('#/…') are followed")
        if not own:
            raise Refused(place, "a reference below an '$id' of its own is not supported")
        if reference not in self._names:
            target, schema = self._resolve(reference, place)
            self._names[reference] = name = f"d{len(self._names)}"
            self._waiting.append((name, target, schema))
        return self._names[reference]

    def _resolve(self, reference: str, place: Place) -> tuple[Place, Any]:
        fragment = unquote(reference[1:])
        if fragment and not fragment.startswith("/"):
            found = next(_anchored(self._schema, fragment), None)
            if found is None:
                raise Refused(place, f"'{reference[:80]}' points at nothing")
            return found
        target: Place = ()
        schema = self._schema
        for step in fragment.split("/")[1:]:
            key: str | int = step.replace("~1", "/").replace("~0", "~")
            if isinstance(schema, list) and step.isdecimal() and int(step[:9]) < len(schema):
                key = int(step)
            elif not isinstance(schema, dict) or key not in schema:
                raise Refused(place, f"'{reference[:80]}' points at nothing")
            schema, target = schema[key], (*target, key)
        return target, schema


def _identifier(schema: Any) -> str:
    """The ``$id``, or older drafts' ``id``, that gives references another base."""
    if not isinstance(schema, dict):
        return ""
    for key in ("$id", "id"):
        if isinstance(schema.get(key), str) and not schema[key].startswith("#"):
            return str(schema[key]).rstrip("#")
    return ""


def _anchored(schema: Any, name: str, place: Place = ()) -> Iterator[tuple[Place, Any]]:
    """Schemas of this ``$anchor``, or of an older draft's ``$id: "#name"``."""
    if isinstance(schema, dict):
        if schema.get("$anchor") == name or f"#{name}" in (schema.get("$id"), schema.get("id")):
            yield place, schema
        for key, value in schema.items():
            if key not in ("enum", "const", "default", "examples"):
                yield from _anchored(value, name, (*place, key))
    elif isinstance(schema, list):
        for index, value in enumerate(schema):
            yield from _anchored(value, name, (*place, index))


def _assertion(key: str, value: Any, schema: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """A keyword without schemas inside; nothing for annotations."""
    if key in ("exclusiveMinimum", "exclusiveMaximum"):
        yield from _exclusive(key, value, schema)
    elif key == "type" and schema.get("nullable") is True:
        yield "type", _with_null(value)
    elif key in _PLAIN or (key == "format" and value in PATTERNS):
        yield key, value


def _exclusive(key: str, value: Any, schema: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Draft 4 says ``true`` beside the bound, the others say the bound."""
    if value is True:
        bound = schema.get(key.replace("exclusiveM", "m"))
        if bound is not None:
            yield key, bound
    elif value is not False:
        yield key, value


def _with_null(value: Any) -> Any:
    """OpenAPI 3.0: ``nullable`` adds null to the types that stand beside it."""
    types = value if isinstance(value, list) else [value]
    return types if "null" in types else [*types, "null"]
