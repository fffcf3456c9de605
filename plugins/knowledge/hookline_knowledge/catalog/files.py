"""The files of the catalog, as functions of its open connection."""

from __future__ import annotations

import sqlite3
from typing import Any

from hookline_knowledge.catalog.pages import Cursor, Listing, Page
from hookline_knowledge.catalog.records import StoredFile
from hookline_knowledge.catalog.states import CURRENT


def add(connection: sqlite3.Connection, /, **values: Any) -> StoredFile:
    """Keeps a file; ``values`` are the fields of `StoredFile` but ``seq``."""
    names = ", ".join(values)
    row = connection.execute(
        f"INSERT INTO files ({names}) VALUES ({', '.join('?' * len(values))}) RETURNING *",  # noqa: S608
        tuple(values.values()),
    ).fetchone()
    return StoredFile.of(row)


def find(connection: sqlite3.Connection, id: str, now: int) -> StoredFile | None:
    """A file by its id, unless it has expired."""
    row = connection.execute(
        "SELECT * FROM files WHERE id = ? AND (expires IS NULL OR expires > ?)", (id, now)
    ).fetchone()
    return StoredFile.of(row) if row else None


def page(
    connection: sqlite3.Connection, cursor: Cursor, purpose: str | None, now: int
) -> Page[StoredFile]:
    """A page of the files, of one purpose or of all. Raises KeyError for an unknown cursor."""
    where = "(expires IS NULL OR expires > ?) AND (? IS NULL OR purpose = ?)"
    listing = Listing("files", "seq", "id", StoredFile.of, where, (now, purpose, purpose))
    return listing.page(connection, cursor)


def named(connection: sqlite3.Connection, ids: set[str]) -> dict[str, StoredFile]:
    """Files by their ids."""
    marks = ", ".join("?" * len(ids))
    rows = connection.execute(f"SELECT * FROM files WHERE id IN ({marks})", tuple(ids))  # noqa: S608
    return {row["id"]: StoredFile.of(row) for row in rows}


def expired(connection: sqlite3.Connection, now: int) -> list[str]:
    """The ids of files whose time is over."""
    rows = connection.execute("SELECT id FROM files WHERE expires <= ?", (now,))
    return [row["id"] for row in rows]


def remove(connection: sqlite3.Connection, id: str) -> str | None:
    """Forgets a file and takes it out of all collections.

    Returns the hash of its bytes where no other file has the same, None where one does.
    """
    row = connection.execute("DELETE FROM files WHERE id = ? RETURNING hash", (id,)).fetchone()
    connection.execute("UPDATE members SET status = 'deleting' WHERE file = ?", (id,))
    if row is None:
        return None
    shared = connection.execute("SELECT 1 FROM files WHERE hash = ?", (row["hash"],)).fetchone()
    return None if shared else str(row["hash"])


def from_origin(connection: sqlite3.Connection, origin: str) -> list[StoredFile]:
    """The files that were read from a path, oldest first."""
    rows = connection.execute("SELECT * FROM files WHERE origin = ? ORDER BY seq", (origin,))
    return [StoredFile.of(row) for row in rows]


def origins(connection: sqlite3.Connection, collection: int) -> list[str]:
    """The paths from which files of a collection were read."""
    rows = connection.execute(
        "SELECT DISTINCT origin FROM files JOIN members ON members.file = files.id "  # noqa: S608
        f"WHERE collection = ? AND {CURRENT} AND origin IS NOT NULL ORDER BY origin",
        (collection,),
    )
    return [row["origin"] for row in rows]


def outdated(connection: sqlite3.Connection, origin: str) -> list[str]:
    """The ids of files from a path that no collection holds any more."""
    rows = connection.execute(
        "SELECT id FROM files WHERE origin = ? AND NOT EXISTS "  # noqa: S608 our own text
        f"(SELECT 1 FROM members WHERE file = files.id AND {CURRENT})",
        (origin,),
    )
    return [row["id"] for row in rows]
