"""Rewrites schemas into the keywords that the grammar compiler gets right.

Every rewriting keeps the set of valid documents, or, where it says so, takes a part of it: an
answer is then valid all the same. What cannot be rewritten raises `Inexpressible`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from hookline_structured.counting import count_properties, unique_items
from hookline_structured.dialect import Schema
from hookline_structured.formats import PATTERNS
from hookline_structured.numeric import exclusive, has_number, is_exact, tidy_number
from hookline_structured.pattern import NotRegular, translate
from hookline_structured.refusal import Place, Refused

Disjoint = Callable[[Schema, Schema], bool]
Fits = Callable[[Schema, Any], bool]

NUMERIC = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf")
STRING = ("minLength", "maxLength")
ARRAY = ("minItems", "maxItems")
OBJECT = ("required", "minProperties", "maxProperties")
FOREIGN = (
    *("not", "if", "then", "else", "dependentRequired", "dependentSchemas", "contains"),
    *("minContains", "maxContains"),
)
"""Keywords that only an equivalent without them can express."""

IN_PLACE = ("$ref", "allOf", "anyOf", "oneOf", "not", "if", "dependentSchemas")


class Inexpressible(Refused):
    """Another form of the same schema might be expressible."""


class Rewriter:
    """Rewrites the schemas of one document.

    ``disjoint(a, b)`` proves that no value fits both; ``fits(schema, value)`` validates. Both know
    the document's ``definitions``.
    """

    def __init__(self, definitions: Mapping[str, Schema], disjoint: Disjoint, fits: Fits) -> None:
        self._definitions = definitions
        self._disjoint = disjoint
        self._fits = fits

    def rewrite(self, schema: Schema, place: Place) -> Schema:
        """One schema and all inside it, order kept. Raises Refused."""
        if isinstance(schema, bool):
            return schema
        if foreign := next((key for key in FOREIGN if key in schema), None):
            raise Inexpressible((*place, foreign), f"'{foreign}' cannot be expressed here")
        if "const" in schema or "enum" in schema:
            return self._values(schema, place)
        if not has_number(schema):
            return False
        result: dict[str, Any] = {}
        more: list[Schema] = []
        for key, value in schema.items():
            self._keyword(key, value, schema, place, result, more)
        if more:
            result["allOf"] = [*result.get("allOf", []), *more]
        if result.get("minProperties", 0) or "maxProperties" in result:
            return count_properties(result, place)
        return result

    def _keyword(
        self,
        key: str,
        value: Any,
        schema: dict[str, Any],
        place: Place,
        result: dict[str, Any],
        more: list[Schema],
    ) -> None:
        """Puts a keyword into ``result``, or what it amounts to into ``more``, an ``allOf``."""
        here = (*place, key)
        if key in ("$ref", "type", *STRING, *ARRAY, *OBJECT):
            result[key] = value
        elif key.startswith("exclusive") and schema.get("type") != "integer":
            result[key] = exclusive(key, value, here)
        elif key in NUMERIC:
            result[key] = tidy_number(value, here)
        elif key == "pattern":
            result[key] = self._pattern(value, here)
        elif key in ("items", "additionalProperties"):
            result[key] = self.rewrite(value, here)
        elif key in ("prefixItems", "allOf", "anyOf"):
            result[key] = self._list(value, here)
        elif key in ("properties", "patternProperties"):
            result[key] = self._named(key, value, here)
        elif key in ("unevaluatedProperties", "unevaluatedItems"):
            self._unevaluated(key, value, schema, here, result)
        else:
            more += self._amounts_to(key, value, schema, place)

    def _amounts_to(
        self, key: str, value: Any, schema: dict[str, Any], place: Place
    ) -> list[Schema]:
        here = (*place, key)
        if key == "format":
            return [{"pattern": translate(PATTERNS[value])}]
        if key == "oneOf":
            return [{"anyOf": self._one_of(value, schema, here)}]
        if key == "propertyNames":
            return [self._property_names(value, here)]
        if key == "uniqueItems":
            return [unique_items(self._with_items(schema), place)] if value else []
        raise Inexpressible(here, f"'{key}' cannot be expressed")

    def _list(self, schemas: list[Schema], place: Place) -> list[Schema]:
        return [self.rewrite(schema, (*place, i)) for i, schema in enumerate(schemas)]

    def _values(self, schema: dict[str, Any], place: Place) -> Schema:
        """``const`` and ``enum``: those of the values that fit all the other keywords."""
        key = "enum" if "enum" in schema else "const"
        values = schema["enum"] if key == "enum" else [schema["const"]]
        rest = {k: v for k, v in schema.items() if k != key}
        kept = [value for value in values if not rest or self._fits(rest, value)]
        for index, value in enumerate(kept):
            is_exact(value, (*place, key, index) if key == "enum" else (*place, key))
        return {"enum": kept} if kept else False

    def _with_items(self, schema: dict[str, Any]) -> dict[str, Any]:
        """The schema with its ``items`` in place of a mere reference to them."""
        items = schema.get("items")
        while isinstance(items, dict) and items.keys() == {"$ref"}:
            items = self._definitions[items["$ref"].rpartition("/")[2]]
        return schema if items is None else {**schema, "items": items}

    def _pattern(self, pattern: str, place: Place) -> str:
        try:
            return translate(pattern)
        except NotRegular as error:
            raise Refused(place, str(error)) from error

    def _one_of(self, branches: list[Schema], schema: dict[str, Any], place: Place) -> list[Schema]:
        """``anyOf``, once no value beside the other keywords can fit two branches."""
        rest: Schema = {k: v for k, v in schema.items() if k != "oneOf"}
        for later in range(len(branches)):
            for earlier in range(later):
                pair: Schema = {"allOf": [rest, branches[later]]}
                if not self._disjoint(branches[earlier], pair):
                    raise Inexpressible(
                        (*place, later),
                        f"it cannot be shown that this and 'oneOf[{earlier}]' exclude each other; "
                        "use 'anyOf', or give them a property with different constants",
                    )
        return self._list(branches, place)

    def _named(self, key: str, schemas: dict[str, Schema], place: Place) -> dict[str, Schema]:
        rewritten = {name: self.rewrite(s, (*place, name)) for name, s in schemas.items()}
        if key == "patternProperties":
            rewritten = {
                self._pattern(name, (*place, name)): schema for name, schema in rewritten.items()
            }
            if len(rewritten) < len(schemas):
                raise Refused(place, "two of the patterns mean the same")
        return rewritten

    def _property_names(self, names: Schema, place: Place) -> Schema:
        """An object schema that allows just those names.

        Listed names become properties; a pattern or lengths become one pattern.
        """
        if isinstance(names, bool) or "string" not in names.get("type", "string"):
            return True if names is True else _only_objects({}, {}, additional=False)
        if "enum" in names or "const" in names:
            listed = names["enum"] if "enum" in names else [names["const"]]
            rest = {k: v for k, v in names.items() if k not in ("enum", "const")}
            fitting = [v for v in listed if isinstance(v, str) and self._fits(rest, v)]
            return _only_objects(dict.fromkeys(fitting, True), {}, additional=False)
        return _only_objects({}, {self._name_pattern(names, place): True}, additional=False)

    def _name_pattern(self, names: dict[str, Any], place: Place) -> str:
        told = names.keys() - {"type"}
        if not told:
            return ""
        if told == {"pattern"}:
            return self._pattern(names["pattern"], (*place, "pattern"))
        if told == {"format"}:
            return translate(PATTERNS[names["format"]])
        if told <= set(STRING):
            most = names.get("maxLength", "")
            return rf"^[\x00-\u{{10FFFF}}]{{{names.get('minLength', 0)},{most}}}$"
        raise Inexpressible(place, f"names with {', '.join(sorted(told))} cannot be expressed")

    def _unevaluated(
        self, key: str, value: Schema, schema: dict[str, Any], place: Place, result: dict[str, Any]
    ) -> None:
        """Without schemas in place, what nobody evaluated is what is additional."""
        if value is True:
            return
        if any(name in schema for name in IN_PLACE):
            raise Inexpressible(place, f"'{key}' beside schemas in place cannot be expressed")
        plain = "additionalProperties" if key == "unevaluatedProperties" else "items"
        if plain not in schema:
            result[plain] = self.rewrite(value, place)


def _only_objects(
    properties: Mapping[str, Schema], patterns: Mapping[str, Schema], *, additional: Schema
) -> Schema:
    """Says something about objects and nothing about other values."""
    return {
        "properties": dict(properties),
        "patternProperties": dict(patterns),
        "additionalProperties": additional,
    }
