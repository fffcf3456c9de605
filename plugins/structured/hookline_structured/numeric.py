"""Numbers in schemas: what survives the compiler's double precision, and what has no solution."""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from hookline_structured.refusal import Place, Refused

EXACT = 2**53
"""From here on, doubles skip integers."""

_UNSPEAKABLE = frozenset(map(chr, [*range(32), 127])) - set("\b\t\n\f\r")
"""Characters that JSON can only write as ``\\u`` escapes, which the grammar leaves out: with them
a key could be spelled in a second way and slip past the names that are taken."""


def tidy_number(value: int | float, place: Place) -> int | float:
    """A bound or divisor that a double holds exactly; whole floats as integers."""
    if isinstance(value, float) and value.is_integer() and abs(value) < EXACT:
        return int(value)
    if isinstance(value, int) and not (abs(value) <= EXACT or _as_double(value) == value):
        raise Refused(place, "an integer beyond 2^53 cannot be held exactly")
    return value


def exclusive(key: str, value: int | float, place: Place) -> int | float:
    """A bound that is excluded, moved by a millionth of a millionth where it is an integer.

    The compiler takes an excluded integer for included when the other bound is less than one away.
    """
    value = tidy_number(value, place)
    if isinstance(value, float):
        return value
    step = max(1, abs(value)) * 1e-12
    return value + step if key == "exclusiveMinimum" else value - step


def _as_double(value: int) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf


def is_exact(value: Any, place: Place) -> None:
    """Raises Refused where a constant holds something that cannot be generated exactly."""
    if isinstance(value, str):
        if _UNSPEAKABLE & set(value):
            raise Refused(place, "a constant with control characters is not supported")
    elif isinstance(value, list):
        for index, item in enumerate(value):
            is_exact(item, (*place, index))
    elif isinstance(value, dict):
        for key, item in value.items():
            is_exact(item, (*place, key))
    elif isinstance(value, int | float) and not isinstance(value, bool):
        tidy_number(value, place)


def has_number(schema: Mapping[str, Any]) -> bool:
    """False where the bounds and ``multipleOf`` of numbers leave none, and nothing else may come.

    Decimal arithmetic: 0.1 means a tenth, as people who write schemas mean it.
    """
    types = schema.get("type")
    types = {types} if isinstance(types, str) else set(types or ("null",))
    if not types <= {"integer", "number"}:
        return True
    steps = [Fraction(1)] if types == {"integer"} else []
    if "multipleOf" in schema:
        steps.append(_decimal(schema["multipleOf"]))
    low, high = _bounds(schema)
    if low is None or high is None:
        return True
    if not steps:
        return low[0] < high[0] or (low == high and not low[1] and not high[1])
    return _multiple_between(_common(steps), low, high)


Bound = tuple[Fraction, bool]
"""A bound, and whether it is excluded."""


def _bounds(schema: Mapping[str, Any]) -> tuple[Bound | None, Bound | None]:
    lows = [(_decimal(schema[k]), x) for k, x in _LOWS if k in schema]
    highs = [(_decimal(schema[k]), x) for k, x in _HIGHS if k in schema]
    low = max(lows, default=None)
    high = min(highs, key=lambda bound: (bound[0], not bound[1]), default=None)
    return low, high


_LOWS = (("minimum", False), ("exclusiveMinimum", True))
_HIGHS = (("maximum", False), ("exclusiveMaximum", True))


def _decimal(value: int | float) -> Fraction:
    return Fraction(str(value))


def _common(steps: list[Fraction]) -> Fraction:
    """The least common multiple."""
    result = abs(steps[0])
    for step in map(abs, steps[1:]):
        result = Fraction(
            math.lcm(result.numerator * step.denominator, step.numerator * result.denominator),
            result.denominator * step.denominator,
        )
    return result


def _multiple_between(step: Fraction, low: Bound, high: Bound) -> bool:
    first = math.ceil(low[0] / step)
    if low[1] and first * step == low[0]:
        first += 1
    value = first * step
    return value < high[0] or (value == high[0] and not high[1])
