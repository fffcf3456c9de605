"""Files in collections, as functions of the catalog's open connection.

A member's life: ``in_progress`` until a worker has taken it and is done, then ``completed``,
``failed`` or ``cancelled``. Two states are for us only: ``superseded``, of an older reading of a
file that is seen until the newer one is complete, and ``deleting``, of rows that nobody sees and
that must leave the store. So whatever happens in between, a document is wholly there or not at all.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence

from hookline_knowledge.catalog.pages import Cursor, Listing, Page
from hookline_knowledge.catalog.records import Attributes, Chunking, Member
from hookline_knowledge.catalog.states import CURRENT, SEARCHED
from hookline_knowledge.catalog.turns import next_turn


def add(
    connection: sqlite3.Connection,
    collection: int,
    file: str,
    *,
    attributes: Attributes,
    chunking: Chunking,
    now: int,
    batch: str | None = None,
) -> Member:
    """Puts a file into a collection, to be read. One that is there already and is or was read the
    same way only gets the attributes and the batch."""
    found = find(connection, collection, file)
    if found and found.chunking == chunking and found.status in ("completed", "in_progress"):
        row = connection.execute(
            "UPDATE members SET attributes = ?, batch = coalesce(?, batch) WHERE seq = ? "
            "RETURNING *",
            (json.dumps(attributes), batch, found.seq),
        ).fetchone()
        return Member.of(row)
    if found:
        supersede(connection, found)
    row = connection.execute(
        "INSERT INTO members (collection, file, attributes, chunk_tokens, overlap_tokens, created, "
        "batch, turn) VALUES (?, ?, ?, ?, ?, ?, ?, ?) RETURNING *",
        (
            *(collection, file, json.dumps(attributes), chunking.tokens, chunking.overlap),
            *(now, batch, next_turn(connection, collection, file, batch)),
        ),
    ).fetchone()
    return Member.of(row)


def supersede(connection: sqlite3.Connection, member: Member) -> None:
    """Makes room for a newer reading of the same file."""
    state = "superseded" if member.status == "completed" else "deleting"
    connection.execute("UPDATE members SET status = ? WHERE seq = ?", (state, member.seq))


def find(connection: sqlite3.Connection, collection: int, file: str) -> Member | None:
    """A file of a collection."""
    row = connection.execute(
        f"SELECT * FROM members WHERE collection = ? AND file = ? AND {CURRENT}",  # noqa: S608
        (collection, file),
    ).fetchone()
    return Member.of(row) if row else None


def with_hash(connection: sqlite3.Connection, collection: int, hash: str) -> Member | None:
    """A file of a collection that has these bytes and is, or will be, complete."""
    row = connection.execute(
        "SELECT members.* FROM members JOIN files ON files.id = members.file WHERE collection = ? "
        "AND hash = ? AND status IN ('completed', 'in_progress') ORDER BY members.seq LIMIT 1",
        (collection, hash),
    ).fetchone()
    return Member.of(row) if row else None


def of_collection(connection: sqlite3.Connection, collection: int) -> list[Member]:
    """All files of a collection, oldest first."""
    rows = connection.execute(
        f"SELECT * FROM members WHERE collection = ? AND {CURRENT} ORDER BY seq",  # noqa: S608
        (collection,),
    )
    return [Member.of(row) for row in rows]


def page(
    connection: sqlite3.Connection,
    cursor: Cursor,
    *,
    collection: int,
    status: str | None = None,
    batch: str | None = None,
) -> Page[Member]:
    """A page of a collection's files. Raises KeyError for an unknown cursor."""
    where = f"collection = ? AND {CURRENT} AND (? IS NULL OR batch = ?)"
    listing = Listing("members", "seq", "file", Member.of, where, (collection, batch, batch))
    return listing.page(connection, cursor, only={"status": status} if status else {})


def visible(connection: sqlite3.Connection, seqs: Sequence[int]) -> dict[int, Member]:
    """Those of some members that a search may show."""
    marks = ", ".join("?" * len(seqs))
    rows = connection.execute(
        f"SELECT * FROM members WHERE seq IN ({marks}) AND {SEARCHED}",  # noqa: S608
        tuple(seqs),
    )
    return {row["seq"]: Member.of(row) for row in rows}


def searchable(connection: sqlite3.Connection, collections: Sequence[int]) -> list[Member]:
    """All members of collections that a search may show."""
    marks = ", ".join("?" * len(collections))
    rows = connection.execute(
        f"SELECT * FROM members WHERE collection IN ({marks}) AND {SEARCHED}",  # noqa: S608
        tuple(collections),
    )
    return [Member.of(row) for row in rows]


def completed(connection: sqlite3.Connection) -> int:
    """How many members have passages in the store."""
    (count,) = connection.execute(
        f"SELECT count(*) FROM members WHERE {SEARCHED}"  # noqa: S608 our own text
    ).fetchone()
    return int(count)


def set_attributes(connection: sqlite3.Connection, seq: int, attributes: Attributes) -> Member:
    """Replaces the attributes of a member."""
    row = connection.execute(
        "UPDATE members SET attributes = ? WHERE seq = ? RETURNING *", (json.dumps(attributes), seq)
    ).fetchone()
    return Member.of(row)


def remove(connection: sqlite3.Connection, collection: int, file: str) -> None:
    """Takes a file out of a collection."""
    connection.execute(
        "UPDATE members SET status = 'deleting' WHERE collection = ? AND file = ?",
        (collection, file),
    )


# The way through the workers


def take(
    connection: sqlite3.Connection,
    worker: str,
    batch: str | None = None,
    most_bytes: int | None = None,
) -> Member | None:
    """The member whose turn it is and that nobody works on, now that worker's; of a batch, or of
    all, and of files that are not larger."""
    row = connection.execute(
        "UPDATE members SET worker = :worker WHERE seq = (SELECT seq FROM members WHERE "
        "status = 'in_progress' AND worker IS NULL AND (:batch IS NULL OR batch = :batch) "
        "AND (:most IS NULL OR (SELECT bytes FROM files WHERE id = file) <= :most) "
        "ORDER BY turn, seq LIMIT 1) RETURNING *",
        {"worker": worker, "batch": batch, "most": most_bytes},
    ).fetchone()
    return Member.of(row) if row else None


def workers(connection: sqlite3.Connection) -> list[str]:
    """Who has taken members."""
    rows = connection.execute("SELECT DISTINCT worker FROM members WHERE worker IS NOT NULL")
    return [row["worker"] for row in rows]


def taken(connection: sqlite3.Connection, worker: str) -> list[int]:
    """What a worker has taken and not completed; the store may hold rows of it that nobody may
    see."""
    rows = connection.execute("SELECT seq FROM members WHERE worker = ?", (worker,))
    return [row["seq"] for row in rows]


def release(connection: sqlite3.Connection, seqs: Sequence[int]) -> None:
    """Gives back what a worker had taken, once the store holds no rows of it."""
    connection.executemany(
        "UPDATE members SET worker = NULL WHERE seq = ?", [(seq,) for seq in seqs]
    )


def wanted(connection: sqlite3.Connection, worker: str) -> set[int]:
    """Which members a worker is to go on with."""
    rows = connection.execute(
        "SELECT seq FROM members WHERE worker = ? AND status = 'in_progress'", (worker,)
    )
    return {row["seq"] for row in rows}


def complete(
    connection: sqlite3.Connection,
    member: Member,
    worker: str,
    usage: int,
    notes: str | None = None,
) -> None:
    """A member's rows are in the store: from now on they are seen, and older ones are not.

    ``notes`` say what of the file is not in them.

    Older ones are earlier readings of the file, files with the same bytes, and files that were read
    from the same path. Nothing happens where the member is not wanted any more.
    """
    changed = connection.execute(
        "UPDATE members SET status = 'completed', worker = NULL, usage_bytes = ?, "
        "error_message = ? WHERE seq = ? AND status = 'in_progress' AND worker = ?",
        (usage, notes, member.seq, worker),
    ).rowcount
    if not changed:
        return
    same = (
        "SELECT other.id FROM files AS other, files AS this WHERE this.id = :file AND "
        "(other.hash = this.hash OR other.origin = this.origin)"
    )
    values = {"file": member.file, "seq": member.seq, "collection": member.collection}
    connection.execute(
        "UPDATE members SET status = 'deleting' WHERE collection = :collection "  # noqa: S608
        f"AND seq < :seq AND file IN ({same}) AND status != 'in_progress'",
        values,
    )
    # Of two that were read at the same time the older may be done last.
    connection.execute(
        "UPDATE members SET status = 'deleting' WHERE seq = :seq AND EXISTS "  # noqa: S608
        "(SELECT 1 FROM members WHERE collection = :collection AND seq > :seq "
        f"AND status = 'completed' AND file IN ({same}))",
        values,
    )


def fail(
    connection: sqlite3.Connection, member: Member, worker: str, code: str, message: str
) -> None:
    """A member cannot be read, and says why. An older reading of it is dropped too."""
    changed = connection.execute(
        "UPDATE members SET status = 'failed', error_code = ?, error_message = ? "
        "WHERE seq = ? AND status = 'in_progress' AND worker = ?",
        (code, message, member.seq, worker),
    ).rowcount
    if changed:
        connection.execute(
            "UPDATE members SET status = 'deleting' WHERE collection = ? AND file = ? AND seq < ?",
            (member.collection, member.file, member.seq),
        )


def deleting(connection: sqlite3.Connection, limit: int) -> list[int]:
    """Members whose rows must leave the store, and that no worker may still add rows of."""
    rows = connection.execute(
        "SELECT seq FROM members WHERE status = 'deleting' AND worker IS NULL LIMIT ?", (limit,)
    )
    return [row["seq"] for row in rows]


def forget(connection: sqlite3.Connection, seqs: Sequence[int]) -> None:
    """Drops members whose rows have left the store."""
    connection.executemany("DELETE FROM members WHERE seq = ?", [(seq,) for seq in seqs])


def is_held(connection: sqlite3.Connection, file: str) -> bool:
    """Whether any collection holds a file."""
    row = connection.execute(
        f"SELECT 1 FROM members WHERE file = ? AND {CURRENT} LIMIT 1",  # noqa: S608 our own text
        (file,),
    ).fetchone()
    return row is not None
