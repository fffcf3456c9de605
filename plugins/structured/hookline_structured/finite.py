"""Takes out of a schema what could only be continued without end.

``{"next": {"$ref": "#"}}`` with ``next`` required allows no document at all, only an endless
beginning of one; a grammar would follow it until the tokens are used up.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hookline_structured.dialect import Document, Schema


def finite(document: Document) -> Document:
    """The document with ``false`` for every schema that no finite value fits."""
    ends = _Ends(document.definitions)
    return Document(
        ends.pruned(document.root),
        {name: ends.pruned(schema) for name, schema in document.definitions.items()},
        document.places,
    )


class _Ends:
    """Which schemas some finite value fits: a least fixed point over the definitions."""

    def __init__(self, definitions: Mapping[str, Schema]) -> None:
        self._ending: frozenset[str] = frozenset()
        while True:
            ending = frozenset(name for name, schema in definitions.items() if self.ends(schema))
            if ending == self._ending:
                return
            self._ending = ending

    def ends(self, schema: Schema) -> bool:
        """Whether some finite value may fit; True where other keywords decide."""
        if isinstance(schema, bool):
            return schema
        if "$ref" in schema and schema["$ref"].rpartition("/")[2] not in self._ending:
            return False
        if "anyOf" in schema and not any(map(self.ends, schema["anyOf"])):
            return False
        if not all(map(self.ends, schema.get("allOf", []))):
            return False
        types = schema.get("type", "null")
        types = [types] if isinstance(types, str) else types
        return any(self._type_ends(kind, schema) for kind in types)

    def _type_ends(self, kind: str, schema: dict[str, Any]) -> bool:
        if kind == "array":
            first = schema.get("prefixItems", [])
            rest = [schema.get("items", True)] * (schema.get("minItems", 0) > len(first))
            return all(map(self.ends, [*first[: schema.get("minItems", 0)], *rest]))
        if kind == "object":
            return all(
                self.ends(self._property(name, schema)) for name in schema.get("required", [])
            )
        return True

    def _property(self, name: str, schema: dict[str, Any]) -> Schema:
        if name in schema.get("properties", {}):
            found: Schema = schema["properties"][name]
            return found
        if schema.get("patternProperties"):
            return True
        additional: Schema = schema.get("additionalProperties", True)
        return additional

    def pruned(self, schema: Schema) -> Schema:
        """The schema with its endless parts false."""
        if isinstance(schema, bool) or not self.ends(schema):
            return schema is True if isinstance(schema, bool) else False
        result: dict[str, Any] = {}
        for key, value in schema.items():
            if key in ("allOf", "prefixItems"):
                result[key] = [self.pruned(item) for item in value]
            elif key == "anyOf":
                result[key] = [kept for item in value if (kept := self.pruned(item)) is not False]
            elif key in ("items", "additionalProperties"):
                result[key] = self.pruned(value)
            elif key in ("properties", "patternProperties"):
                result[key] = {name: self.pruned(item) for name, item in value.items()}
            else:
                result[key] = value
        return result
