"""The collections of the catalog, as functions of its open connection."""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Sequence
from typing import Any

from hookline_knowledge.catalog.pages import Cursor, Listing, Page
from hookline_knowledge.catalog.records import Collection, Counts
from hookline_knowledge.catalog.states import CURRENT
from hookline_knowledge.names import plain

_SHORT_ID = re.compile(r"c:([1-9][0-9]{0,17})")
_COUNTS = """
    sum(status = 'in_progress') AS in_progress, sum(status = 'completed') AS completed,
    sum(status = 'failed') AS failed, sum(status = 'cancelled') AS cancelled,
    sum(usage_bytes) AS usage_bytes
"""


def add(connection: sqlite3.Connection, /, **values: Any) -> Collection:
    """Keeps a collection; ``values`` are fields of `Collection`."""
    values["metadata"] = json.dumps(values["metadata"])
    names = ", ".join(values)
    row = connection.execute(
        f"INSERT INTO collections ({names}) VALUES ({', '.join('?' * len(values))}) "  # noqa: S608
        "RETURNING *",
        tuple(values.values()),
    ).fetchone()
    return Collection.of(row)


def find(connection: sqlite3.Connection, name: str) -> list[Collection]:
    """The collection with that id, be it ``vs_…`` or ``c:3``; else all open ones of that name, as
    it was asked for or in its plain writing. None is found by an empty name."""
    short = _SHORT_ID.fullmatch(name)
    rows = connection.execute(
        "SELECT * FROM collections WHERE (id = ? OR number = ?) AND state != 'deleting'",
        (name, int(short[1]) if short else None),
    ).fetchall()
    if not rows:
        rows = connection.execute(
            "SELECT * FROM collections WHERE name IN (?, ?) AND name != '' AND state = 'open' "
            "ORDER BY number",
            (name, plain(name)),
        ).fetchall()
    return [Collection.of(row) for row in rows]


def page(connection: sqlite3.Connection, cursor: Cursor) -> Page[Collection]:
    """A page of the collections. Raises KeyError for an unknown cursor."""
    listing = Listing("collections", "number", "id", Collection.of, "state != 'deleting'")
    return listing.page(connection, cursor)


def all_open(connection: sqlite3.Connection) -> list[Collection]:
    """All that have not expired, oldest first."""
    rows = connection.execute("SELECT * FROM collections WHERE state = 'open' ORDER BY number")
    return [Collection.of(row) for row in rows]


def update(connection: sqlite3.Connection, number: int, /, **values: Any) -> Collection:
    """Changes fields of a collection."""
    if "metadata" in values:
        values["metadata"] = json.dumps(values["metadata"])
    changes = ", ".join(f"{name} = ?" for name in values)
    row = connection.execute(
        f"UPDATE collections SET {changes} WHERE number = ? RETURNING *",  # noqa: S608 our names
        (*values.values(), number),
    ).fetchone()
    return Collection.of(row)


def touch(connection: sqlite3.Connection, numbers: Sequence[int], now: int) -> None:
    """Notes that collections were used."""
    connection.executemany(
        "UPDATE collections SET active = ? WHERE number = ? AND active < ?",
        [(now, number, now) for number in numbers],
    )


def counts(connection: sqlite3.Connection, numbers: Sequence[int]) -> dict[int, Counts]:
    """How many files are in which state, of each collection."""
    marks = ", ".join("?" * len(numbers))
    rows = connection.execute(
        f"SELECT collection, {_COUNTS} FROM members "  # noqa: S608 our own text
        f"WHERE {CURRENT} AND collection IN ({marks}) GROUP BY collection",
        tuple(numbers),
    ).fetchall()
    found = {row["collection"]: _counts(row) for row in rows}
    return {number: found.get(number, Counts()) for number in numbers}


def batch_counts(connection: sqlite3.Connection, batch: str) -> Counts:
    """How many files of a batch are in which state."""
    row = connection.execute(
        f"SELECT {_COUNTS} FROM members WHERE {CURRENT} AND batch = ?",  # noqa: S608 our own text
        (batch,),
    ).fetchone()
    return _counts(row)


def due(connection: sqlite3.Connection, now: int) -> list[int]:
    """The numbers of open collections whose time is over."""
    rows = connection.execute(
        "SELECT number FROM collections WHERE state = 'open' "
        "AND active + expires_days * 86400 <= ?",
        (now,),
    )
    return [row["number"] for row in rows]


def empty(connection: sqlite3.Connection, number: int, state: str) -> None:
    """Takes everything out of a collection, which is then ``expired`` or ``deleting``."""
    connection.execute("UPDATE collections SET state = ? WHERE number = ?", (state, number))
    connection.execute("UPDATE members SET status = 'deleting' WHERE collection = ?", (number,))


def forget_deleted(connection: sqlite3.Connection) -> None:
    """Drops deleted collections whose members are gone."""
    gone = "SELECT number FROM collections WHERE state = 'deleting' AND NOT EXISTS "
    gone += "(SELECT 1 FROM members WHERE collection = number)"
    connection.execute(f"DELETE FROM batches WHERE collection IN ({gone})")  # noqa: S608
    connection.execute(f"DELETE FROM collections WHERE number IN ({gone})")  # noqa: S608


def _counts(row: sqlite3.Row) -> Counts:
    return Counts(*(row[name] or 0 for name in Counts.__slots__))
