"""In which order waiting members are read: large files and long batches must hold up nobody.

Self-clocked fair queueing (Golestani, INFOCOM 1994). Each batch, and the single files of each
collection, are a queue of their own. A member's ``turn`` is the work done when it is done, if all
queues were served evenly: it counts on from the member before it in its queue, or from what is
being read now where that is further. The least turn is read first. So small files pass large ones
that have not begun, queues take turns however long they are, and as turns only grow nothing waits
for ever.
"""

from __future__ import annotations

import sqlite3

QUEUE = "coalesce(batch, collection)"
"""Whose turns count on from each other, in SQL; there is an index of exactly this."""
UNIT_BYTES = 65536
"""Reading so many bytes costs as much as beginning with a file."""


def next_turn(connection: sqlite3.Connection, collection: int, file: str, batch: str | None) -> int:
    """The turn of a file that is added now."""
    (before,) = connection.execute(
        f"SELECT max(turn) FROM members WHERE {QUEUE} = ? AND status = 'in_progress'",  # noqa: S608
        (collection if batch is None else batch,),
    ).fetchone()
    return max(before or 0, _now(connection)) + _cost(connection, file)


def _now(connection: sqlite3.Connection) -> int:
    """The turn that is being served; where nobody is at work, when the next one begins."""
    (now,) = connection.execute("SELECT max(turn) FROM members WHERE worker IS NOT NULL").fetchone()
    if now is not None:
        return int(now)
    following = connection.execute(
        "SELECT turn, file FROM members WHERE status = 'in_progress' ORDER BY turn LIMIT 1"
    ).fetchone()
    return int(following["turn"]) - _cost(connection, following["file"]) if following else 0


def _cost(connection: sqlite3.Connection, file: str) -> int:
    (bytes,) = connection.execute("SELECT bytes FROM files WHERE id = ?", (file,)).fetchone()
    return 1 + int(bytes) // UNIT_BYTES
