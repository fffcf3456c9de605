"""Files added at once, as functions of the catalog's open connection."""

from __future__ import annotations

import sqlite3

from hookline_knowledge.catalog.records import Batch


def add(connection: sqlite3.Connection, id: str, collection: int, now: int) -> Batch:
    """Keeps a batch."""
    row = connection.execute(
        "INSERT INTO batches (id, collection, created) VALUES (?, ?, ?) RETURNING *",
        (id, collection, now),
    ).fetchone()
    return Batch.of(row)


def find(connection: sqlite3.Connection, collection: int, id: str) -> Batch | None:
    """A batch of a collection."""
    row = connection.execute(
        "SELECT * FROM batches WHERE collection = ? AND id = ?", (collection, id)
    ).fetchone()
    return Batch.of(row) if row else None


def cancel(connection: sqlite3.Connection, id: str) -> None:
    """Ends what of a batch is not done yet. One that is done stays as it is."""
    rows = connection.execute(
        "UPDATE members SET status = 'cancelled' WHERE batch = ? AND status = 'in_progress'", (id,)
    )
    if rows.rowcount:
        connection.execute("UPDATE batches SET cancelled = 1 WHERE id = ?", (id,))
