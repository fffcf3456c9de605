"""Where each value of the settings came from."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

Key = tuple[str | int, ...]
"""A place in the settings: ``("server", "port")``, or ``("plugins", 0)`` for an item of a list."""


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a value came from.

    ``name`` is the variable, the flag, or ``file:line``. ``folder`` is what relative paths are
    relative to; None means the working directory.
    """

    kind: Literal["default", "file", "environment", "flag"] = "default"
    name: str = ""
    folder: Path | None = None

    def __str__(self) -> str:
        return self.name or self.kind


@dataclass(slots=True)
class Origins:
    """The origins of all values that are no defaults.

    ``values`` are those of single values, ``tables`` those of the tables around them.
    """

    values: dict[Key, Origin] = field(default_factory=dict)
    tables: dict[Key, Origin] = field(default_factory=dict)

    def of(self, key: Key) -> Origin:
        """A value's origin; an item's is that of its list."""
        return _nearest(self.values, key) or Origin()

    def around(self, key: Key) -> Origin:
        """A value's origin; where it is missing or a table, that of what is around or in it."""
        inside = (origin for place, origin in self.values.items() if place[: len(key)] == key)
        near = _nearest(self.values, key) or _nearest(self.tables, key)
        return near or next(inside, Origin())

    def update(self, later: Origins) -> None:
        """Lets the values of a stronger source win."""
        self.values.update(later.values)
        self.tables.update(later.tables)


def _nearest(origins: Mapping[Key, Origin], key: Key) -> Origin | None:
    prefixes = (key[:length] for length in range(len(key), 0, -1))
    return next((origins[prefix] for prefix in prefixes if prefix in origins), None)


def leaves(values: Mapping[str, Any], at: Key = ()) -> Iterator[tuple[Key, Any]]:
    """All single values with their place; an empty table counts as one."""
    for name, value in values.items():
        if isinstance(value, Mapping) and value:
            yield from leaves(value, (*at, name))
        else:
            yield (*at, name), value


def toml_lines(text: str) -> dict[Key, int]:
    """The line on which each key and table of a valid TOML text begins, counted from 1.

    `tomllib` does not tell. A statement is the fewest lines that parse by themselves.
    """
    lines: dict[Key, int] = {}
    table: Key = ()
    pending, start = "", 1
    # not splitlines(): it also splits at characters that TOML allows inside texts
    for number, line in enumerate(text.split("\n"), 1):
        if not pending:
            start = number
        pending += line + "\n"
        try:
            statement = tomllib.loads(pending)
        except tomllib.TOMLDecodeError:
            continue
        is_header = pending.lstrip().startswith("[")
        keys = list(_keys(statement))
        if is_header:
            table = keys[-1]
        for key in keys:
            lines.setdefault(key if is_header else (*table, *key), start)
        pending = ""
    return lines


def _keys(values: Any, at: Key = ()) -> Iterator[Key]:
    """All places in nested tables, outer ones first; an array of tables counts as its table."""
    if isinstance(values, list) and values and isinstance(values[0], Mapping):
        values = values[0]
    if not isinstance(values, Mapping):
        return
    for name, value in values.items():
        yield (*at, name)
        yield from _keys(value, (*at, name))
