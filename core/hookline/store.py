"""What must survive a restart: API keys and today's counts, in one SQLite file.

The file is in WAL mode, so that ``hookline keys`` can write while the server runs. Every change is
one statement in autocommit, which makes it atomic for other tasks and other processes alike.

``synchronous = NORMAL`` keeps counts over ``kill -9``: a commit has been written to the operating
system, only a power cut can lose the last ones. Changes of keys do wait for the disk, because a
revoked key must not come back with the power.
"""

from __future__ import annotations

import asyncio
import os
import sqlite3
import time
from dataclasses import dataclass, field
from datetime import date, datetime
from pathlib import Path

import aiosqlite

from hookline.errors import HooklineError, StartError

FILE_NAME = "hookline.db"
BUSY_SECONDS = 10.0
"""How long a statement waits for another process that writes."""

MIGRATIONS: tuple[tuple[str, ...], ...] = (
    (
        """CREATE TABLE keys (
            id TEXT PRIMARY KEY,
            hash TEXT NOT NULL,
            name TEXT NOT NULL,
            created TEXT NOT NULL,
            last_used TEXT,
            revoked TEXT
        ) STRICT""",
        "CREATE UNIQUE INDEX one_active_key_a_name ON keys (name) WHERE revoked IS NULL",
        """CREATE TABLE counts (
            day TEXT NOT NULL,
            scope TEXT NOT NULL,
            used INTEGER NOT NULL CHECK (used >= 0),
            PRIMARY KEY (day, scope)
        ) STRICT, WITHOUT ROWID""",
    ),
)
"""Statements by schema version; ``PRAGMA user_version`` says how many sets a file has seen."""


class NameTaken(HooklineError):
    """Another active key has that name."""


@dataclass(frozen=True, slots=True)
class StoredKey:
    """A key as it is kept: never the key, only its SHA-256 in hex. Times are aware, in UTC."""

    id: str
    hash: str = field(repr=False)
    name: str
    created: datetime
    last_used: datetime | None = None
    revoked: datetime | None = None


class Store:
    """Keys and counts in ``hookline.db``; an async context manager that opens and closes it.

    Entering raises StartError when the file cannot be created, read or written, is damaged, or
    comes from a newer Hookline. Any number of tasks and processes may use the same file.
    """

    def __init__(self, data_dir: Path) -> None:
        self.path = data_dir / FILE_NAME
        self._opened: aiosqlite.Connection | None = None
        self._syncing = asyncio.Lock()

    async def __aenter__(self) -> Store:
        try:
            _create_private(self.path)
            self._opened = await aiosqlite.connect(
                self.path, timeout=BUSY_SECONDS, isolation_level=None
            )
            self._opened.row_factory = sqlite3.Row
            await self._prepare()
        except BaseException as error:
            await self.close()
            if not isinstance(error, OSError | sqlite3.Error | StartError):
                raise
            raise StartError(
                f"Cannot use {self.path}, which keeps API keys and counts: {error}. "
                "Make it readable and writable, restore it, or move it away to start afresh."
            ) from error
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Closes the file; harmless when it is not open."""
        opened, self._opened = self._opened, None
        if opened is not None:
            await opened.close()

    async def _prepare(self) -> None:
        if sqlite3.sqlite_version_info < (3, 37):
            raise StartError(f"SQLite 3.37 or newer is needed, not {sqlite3.sqlite_version}")
        await self._rows("PRAGMA synchronous = NORMAL")
        # Fails for a file that can only be read, too. Closing rolls back what failed half-way.
        await self._rows("BEGIN IMMEDIATE")
        await self._check()
        await self._migrate()
        await self._rows("COMMIT")
        await self._switch_to_wal()

    async def _switch_to_wal(self) -> None:
        deadline = time.monotonic() + BUSY_SECONDS
        while True:
            try:
                await self._rows("PRAGMA journal_mode = WAL")
                return
            except sqlite3.OperationalError as error:
                # SQLite does not wait for its turn here, so first openers at once would fail.
                busy = error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY
                if not busy or time.monotonic() > deadline:
                    raise
                await asyncio.sleep(0.01)

    async def _check(self) -> None:
        ((verdict,),) = await self._rows("PRAGMA quick_check(1)")
        if verdict != "ok":
            raise StartError(f"it is damaged ({' '.join(verdict.split())})")

    async def _migrate(self) -> None:
        ((version,),) = await self._rows("PRAGMA user_version")
        if version > len(MIGRATIONS):
            raise StartError(f"a newer Hookline wrote it (schema {version})")
        for statement in (one for step in MIGRATIONS[version:] for one in step):
            await self._rows(statement)
        await self._rows(f"PRAGMA user_version = {len(MIGRATIONS)}")

    async def _rows(self, statement: str, *values: str | int) -> list[sqlite3.Row]:
        """Runs one statement to its end in the connection's thread."""
        if self._opened is None:
            raise RuntimeError("The store is not open: use it as 'async with Store(data_dir)'.")
        return list(await self._opened.execute_fetchall(statement, values))

    async def _durably(self, statement: str, *values: str | int) -> list[sqlite3.Row]:
        """Like `_rows`, and returns only once the change is on the disk."""
        async with self._syncing:
            await self._rows("PRAGMA synchronous = FULL")
            try:
                return await self._rows(statement, *values)
            finally:
                await self._rows("PRAGMA synchronous = NORMAL")

    # Keys

    async def add_key(self, key: StoredKey) -> None:
        """Keeps a new key. Raises NameTaken when an active key has its name."""
        try:
            await self._durably(
                "INSERT INTO keys (id, hash, name, created) VALUES (?, ?, ?, ?)",
                *(key.id, key.hash, key.name, key.created.isoformat()),
            )
        except sqlite3.IntegrityError as error:
            raise NameTaken(f"There is an active key named '{key.name}' already.") from error

    async def keys(self) -> list[StoredKey]:
        """All keys, revoked ones too, oldest first."""
        rows = await self._rows("SELECT * FROM keys ORDER BY created, rowid")
        return [_stored_key(row) for row in rows]

    async def find_key(self, id: str) -> StoredKey | None:
        """The key of that id unless it is revoked. Reads the file each time, so that a revocation
        by another process counts at once."""
        rows = await self._rows("SELECT * FROM keys WHERE id = ? AND revoked IS NULL", id)
        return _stored_key(rows[0]) if rows else None

    async def revoke_key(self, name: str, now: datetime) -> StoredKey | None:
        """Ends the active key of that name and returns it; None when there is none."""
        rows = await self._durably(
            "UPDATE keys SET revoked = ? WHERE name = ? AND revoked IS NULL RETURNING *",
            *(now.isoformat(), name),
        )
        return _stored_key(rows[0]) if rows else None

    async def touch_key(self, id: str, now: datetime) -> None:
        """Notes when a key was last used."""
        await self._rows("UPDATE keys SET last_used = ? WHERE id = ?", now.isoformat(), id)

    # Counts

    async def take(self, day: date, scope: str, limit: int) -> int | None:
        """Counts one more unless ``limit`` (at least 1) is reached.

        Returns the new count, or None when nothing was left. ``scope`` is whose count it is.
        """
        rows = await self._rows(
            "INSERT INTO counts (day, scope, used) VALUES (?, ?, 1) "
            "ON CONFLICT DO UPDATE SET used = used + 1 WHERE used < ? RETURNING used",
            *(day.isoformat(), scope, limit),
        )
        return int(rows[0]["used"]) if rows else None

    async def give_back(self, day: date, scope: str) -> None:
        """Counts one less, never below 0."""
        await self._rows(
            "UPDATE counts SET used = used - 1 WHERE day = ? AND scope = ? AND used > 0",
            *(day.isoformat(), scope),
        )

    async def counts(self, day: date) -> dict[str, int]:
        """The day's counts by scope."""
        rows = await self._rows(
            "SELECT scope, used FROM counts WHERE day = ? ORDER BY scope", day.isoformat()
        )
        return {row["scope"]: row["used"] for row in rows}

    async def reset_counts(self, day: date) -> None:
        """Sets all of the day's counts to 0."""
        await self._rows("DELETE FROM counts WHERE day = ?", day.isoformat())

    async def purge_counts(self, before: date) -> None:
        """Forgets the counts of all days before that one."""
        await self._rows("DELETE FROM counts WHERE day < ?", before.isoformat())


def _stored_key(row: sqlite3.Row) -> StoredKey:
    times = {
        name: row[name] and datetime.fromisoformat(row[name])
        for name in ("created", "last_used", "revoked")
    }
    return StoredKey(id=row["id"], hash=row["hash"], name=row["name"], **times)


def _create_private(path: Path) -> None:
    """Makes the file for its owner's eyes only; SQLite gives its side files the same mode."""
    for folder in reversed(path.parents):
        # Path.mkdir(parents=True) would give the upper folders the default mode.
        if not folder.exists():
            folder.mkdir(mode=0o700, exist_ok=True)
    os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
