"""Lists in pages, by cursors."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Generic, TypeVar

Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class Cursor:
    """Which page: ``limit`` items after or before the one with that id, newest first or last."""

    limit: int = 20
    newest_first: bool = True
    after: str | None = None
    before: str | None = None


@dataclass(frozen=True, slots=True)
class Page(Generic[Item]):
    """Some of a list, and whether more follow in the direction that was asked for."""

    items: list[Item]
    has_more: bool


@dataclass(frozen=True, slots=True)
class Listing(Generic[Item]):
    """A table's rows as records. ``key`` is the column that counts up, ``id`` the one that cursors
    name, ``where`` which rows, with ``values``."""

    table: str
    key: str
    id: str
    read: Callable[[sqlite3.Row], Item]
    where: str = "1"
    values: Sequence[Any] = ()

    def page(
        self,
        connection: sqlite3.Connection,
        cursor: Cursor,
        only: Mapping[str, str] = MappingProxyType({}),
    ) -> Page[Item]:
        """One page of those whose columns have the values in ``only``.

        A cursor may name an item that has not, for it may have changed since. Raises KeyError with
        the id of a cursor that is not in the list.
        """
        backwards = cursor.before is not None and cursor.after is None
        descending = cursor.newest_first != backwards
        bounds, values = self._bounds(connection, cursor)
        bounds += "".join(f" AND {column} = ?" for column in only)
        rows = connection.execute(
            f"SELECT * FROM {self.table} WHERE {self.where}{bounds} "  # noqa: S608 ours
            f"ORDER BY {self.key} {'DESC' if descending else 'ASC'} LIMIT ?",
            (*self.values, *values, *only.values(), cursor.limit + 1),
        ).fetchall()
        items = [self.read(row) for row in rows[: cursor.limit]]
        return Page(items[::-1] if backwards else items, len(rows) > cursor.limit)

    def _bounds(self, connection: sqlite3.Connection, cursor: Cursor) -> tuple[str, list[int]]:
        bounds, values = "", []
        for id, beyond in ((cursor.after, "<"), (cursor.before, ">")):
            if id is not None:
                sign = beyond if cursor.newest_first else {"<": ">", ">": "<"}[beyond]
                bounds += f" AND {self.key} {sign} ?"
                values.append(self._place(connection, id))
        return bounds, values

    def _place(self, connection: sqlite3.Connection, id: str) -> int:
        row = connection.execute(
            f"SELECT {self.key} FROM {self.table} WHERE {self.where} AND {self.id} = ?",  # noqa: S608
            (*self.values, id),
        ).fetchone()
        if row is None:
            raise KeyError(id)
        return int(row[0])
