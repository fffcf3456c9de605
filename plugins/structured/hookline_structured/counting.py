"""``uniqueItems``, ``minProperties`` and ``maxProperties``, written out as alternatives.

A grammar cannot count what it has seen, but where there are few possibilities it can list them.
"""

from __future__ import annotations

import math
from itertools import combinations, permutations
from typing import Any

from hookline_structured.dialect import Schema
from hookline_structured.refusal import Place, Refused

MOST = 400
"""Alternatives that one keyword may be written out as."""

MOST_ITEMS = 2000
"""Items of the arrays that ``uniqueItems`` may be written out as, taken together."""


def unique_items(schema: dict[str, Any], place: Place) -> Schema:
    """An array without repetitions from a finite list of values.

    In every order while those are few enough, else in the order of the list, like the properties
    of an object. Raises Refused where the items are not such a list.
    """
    most = schema.get("maxItems", math.inf)
    if most <= 1:
        return True
    values = _finite(schema)
    if values is None:
        raise Refused(
            (*place, "uniqueItems"),
            "unique items can be enforced only where 'items' is an 'enum' (or 'maxItems' is 1)",
        )
    low, high = schema.get("minItems", 0), min(len(values), most)
    sizes = range(low, int(high) + 1)
    if sum(size * math.perm(len(values), size) for size in sizes) <= MOST_ITEMS:
        chosen = [p for size in sizes for p in permutations(values, size)]
    elif sum(size * math.comb(len(values), size) for size in sizes) <= MOST_ITEMS:
        chosen = [c for size in sizes for c in combinations(values, size)]
    else:
        raise Refused((*place, "uniqueItems"), "there are too many ways to choose unique items")
    arrays: list[Any] = [list(items) for items in chosen]
    kinds = schema.get("type", _ALL)
    others = [kind for kind in ([kinds] if isinstance(kinds, str) else kinds) if kind != "array"]
    free: list[Schema] = [{"type": others}] if others else []
    return {"anyOf": [*free, *([{"enum": arrays}] if arrays else [])]} if free or arrays else False


_ALL = ("null", "boolean", "number", "string", "object", "array")


def _finite(schema: dict[str, Any]) -> list[Any] | None:
    """The values that items can have, each once; None when they cannot be listed."""
    items = schema.get("items", True)
    if "prefixItems" in schema or not isinstance(items, dict):
        return None
    if items == {"type": "boolean"}:
        return [False, True]
    if not items.keys() <= {"enum", "const", "type"} or not items.keys() & {"enum", "const"}:
        return None
    values: list[Any] = []
    for value in items.get("enum", [items.get("const")]):
        if not any(_same(value, other) for other in values):
            values.append(value)
    return values


def _same(left: Any, right: Any) -> bool:
    """Equal as JSON: 1 is 1.0, but true is not 1."""
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(_same, left, right))
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(_same(left[k], right[k]) for k in left)
    return bool(left == right)


def count_properties(schema: dict[str, Any], place: Place) -> Schema:
    """An object whose number of properties is bounded, as alternatives by which optional
    properties are present.

    A name that is not listed can be said twice, so only one of those can be asked for.
    """
    kinds = schema.get("type", list(_ALL))
    if kinds != "object" and kinds != ["object"]:
        return _split_types(schema, place)
    low = schema.get("minProperties", 0)
    high = schema.get("maxProperties", math.inf)
    properties = schema.get("properties", {})
    required = list(dict.fromkeys(schema.get("required", [])))
    optional = [n for n, s in properties.items() if n not in required and s is not False]
    closed = schema.get("additionalProperties", True) is False and not schema.get(
        "patternProperties"
    )
    if low <= len(required) and high >= (len(required) + len(optional) if closed else math.inf):
        return {k: v for k, v in schema.items() if k not in ("minProperties", "maxProperties")}
    if closed and low - len(required) <= 1 and high == math.inf:
        return schema
    return _by_presence(schema, place, optional, len(required), closed)


def _split_types(schema: dict[str, Any], place: Place) -> Schema:
    """The object apart from the other types, which are not counted."""
    kinds = schema.get("type", list(_ALL))
    kinds = [kinds] if isinstance(kinds, str) else kinds
    others = [kind for kind in kinds if kind != "object"]
    plain = {k: v for k, v in schema.items() if k not in ("minProperties", "maxProperties")}
    if "object" not in kinds:
        return plain
    counted = count_properties({**schema, "type": "object"}, place)
    return {"anyOf": [{**plain, "type": others}, counted]}


def _by_presence(
    schema: dict[str, Any], place: Place, optional: list[str], fixed: int, closed: bool
) -> Schema:
    low = schema.get("minProperties", 0)
    high = schema.get("maxProperties", math.inf)
    alternatives: list[Schema] = []
    for size in range(len(optional) + 1):
        least, most = max(0, low - fixed - size), high - fixed - size
        if most < 0 or (closed and least > 0):
            continue
        if least > 1:
            raise Refused(
                (*place, "minProperties"),
                "more than one property without a name of its own cannot be asked for",
            )
        if len(alternatives) + math.comb(len(optional), size) > MOST:
            raise Refused(place, "there are too many ways to choose the optional properties")
        alternatives += [
            _present(schema, set(optional) - set(present), present, closed)
            for present in combinations(optional, size)
        ]
    return {"anyOf": alternatives} if alternatives else False


def _present(
    schema: dict[str, Any], absent: set[str], present: tuple[str, ...], closed: bool
) -> Schema:
    """The object with just these of its optional properties."""
    result = {
        **schema,
        "properties": {
            name: False if name in absent else value
            for name, value in schema.get("properties", {}).items()
        },
        "required": [*schema.get("required", []), *present],
    }
    if closed:
        result.pop("minProperties", None)
        result.pop("maxProperties", None)
    return result
