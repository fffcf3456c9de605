"""Filters by the attributes of files, as OpenAI has them."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Discriminator, Field, Tag, model_validator

from hookline_knowledge.catalog import Attributes

Scalar = bool | int | float | str
DEEPEST = 16


class Comparison(BaseModel):
    """One attribute, compared with a value. A file without the attribute does not match, but for
    ``ne`` and ``nin``."""

    model_config = ConfigDict(extra="forbid", strict=True)

    type: Literal["eq", "ne", "gt", "gte", "lt", "lte", "in", "nin"]
    key: str
    value: Scalar | list[Scalar]

    @model_validator(mode="after")
    def _fits(self) -> Comparison:
        if (self.type in ("in", "nin")) != isinstance(self.value, list):
            kind = "a list" if self.type in ("in", "nin") else "one string, number or boolean"
            raise ValueError(f"the value of '{self.type}' must be {kind}")
        if self.type in ("gt", "gte", "lt", "lte") and isinstance(self.value, bool):
            raise ValueError(f"'{self.type}' compares numbers and strings, not booleans")
        return self


class Compound(BaseModel):
    """All of several filters, or any of them."""

    model_config = ConfigDict(extra="forbid", strict=True)

    type: Literal["and", "or"]
    filters: list[Filter] = Field(min_length=1, max_length=64)

    @model_validator(mode="after")
    def _not_too_deep(self) -> Compound:
        if _depth(self) > DEEPEST:
            raise ValueError(f"filters may be nested {DEEPEST} deep")
        return self


def _kind(value: object) -> str:
    kind = value.get("type") if isinstance(value, dict) else getattr(value, "type", None)
    return "compound" if kind in ("and", "or") else "comparison"


Filter = Annotated[
    Annotated[Comparison, Tag("comparison")] | Annotated[Compound, Tag("compound")],
    Discriminator(_kind),
]


def matches(wanted: Comparison | Compound, attributes: Attributes) -> bool:
    """Whether attributes pass a filter."""
    if isinstance(wanted, Compound):
        combine = all if wanted.type == "and" else any
        return combine(matches(part, attributes) for part in wanted.filters)
    return _compare(wanted, attributes.get(wanted.key))


def _compare(wanted: Comparison, has: Scalar | None) -> bool:
    value = wanted.value
    match wanted.type:
        case "eq":
            return _same(has, value)
        case "ne":
            return not _same(has, value)
        case "in":
            return isinstance(value, list) and any(_same(has, one) for one in value)
        case "nin":
            return not (isinstance(value, list) and any(_same(has, one) for one in value))
        case order:
            return _ordered(order, has, value)


def _ordered(order: str, has: Scalar | None, value: Scalar | list[Scalar]) -> bool:
    if isinstance(has, str) and isinstance(value, str):
        sign = (has > value) - (has < value)
    elif _is_number(has) and _is_number(value):
        sign = (has > value) - (has < value)  # type: ignore[operator]
    else:
        return False
    return {"gt": sign > 0, "gte": sign >= 0, "lt": sign < 0, "lte": sign <= 0}[order]


def _same(has: Scalar | None, value: object) -> bool:
    # In Python True == 1; in JSON they are different things.
    return has == value and isinstance(has, bool) == isinstance(value, bool)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _depth(wanted: Comparison | Compound) -> int:
    if isinstance(wanted, Comparison):
        return 1
    return 1 + max(_depth(part) for part in wanted.filters)


Compound.model_rebuild()
