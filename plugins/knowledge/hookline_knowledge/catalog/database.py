"""The catalog's SQLite file, and the one thread that uses it.

Everything is a function of the open connection that runs in that thread as one transaction: so the
event loop never waits for the disk, and no two tasks share half of a change. The file is in WAL
mode; any number of processes may use it at once.
"""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Concatenate, ParamSpec, TypeVar

from hookline import StartError
from hookline_knowledge.problems import KnowledgeUnavailable, telling_of_full_disk

FILE_NAME = "catalog.db"
BUSY_SECONDS = 15.0
"""How long a transaction waits for another process that writes."""

MIGRATIONS: tuple[tuple[str, ...], ...] = (
    (
        """CREATE TABLE files (
            seq INTEGER PRIMARY KEY AUTOINCREMENT,
            id TEXT NOT NULL UNIQUE,
            name TEXT NOT NULL,
            purpose TEXT NOT NULL,
            bytes INTEGER NOT NULL,
            hash TEXT NOT NULL,
            media_type TEXT,
            origin TEXT,
            created INTEGER NOT NULL,
            expires INTEGER
        ) STRICT""",
        "CREATE INDEX files_by_hash ON files (hash)",
        "CREATE INDEX files_by_origin ON files (origin) WHERE origin IS NOT NULL",
        """CREATE TABLE collections (
            number INTEGER PRIMARY KEY AUTOINCREMENT,
            id TEXT NOT NULL UNIQUE,
            name TEXT NOT NULL,
            description TEXT,
            metadata TEXT NOT NULL,
            state TEXT NOT NULL DEFAULT 'open',
            created INTEGER NOT NULL,
            active INTEGER NOT NULL,
            expires_days INTEGER
        ) STRICT""",
        "CREATE INDEX collections_by_name ON collections (name)",
        """CREATE TABLE members (
            seq INTEGER PRIMARY KEY AUTOINCREMENT,
            collection INTEGER NOT NULL,
            file TEXT NOT NULL,
            status TEXT NOT NULL DEFAULT 'in_progress',
            error_code TEXT,
            error_message TEXT,
            attributes TEXT NOT NULL,
            chunk_tokens INTEGER NOT NULL,
            overlap_tokens INTEGER NOT NULL,
            usage_bytes INTEGER NOT NULL DEFAULT 0,
            created INTEGER NOT NULL,
            batch TEXT,
            worker TEXT
        ) STRICT""",
        """CREATE UNIQUE INDEX one_current_member_a_file ON members (collection, file)
            WHERE status NOT IN ('superseded', 'deleting')""",
        "CREATE INDEX members_by_file ON members (file)",
        "CREATE INDEX members_by_batch ON members (batch) WHERE batch IS NOT NULL",
        """CREATE INDEX members_at_work ON members (status, seq)
            WHERE status IN ('in_progress', 'deleting')""",
        """CREATE TABLE batches (
            seq INTEGER PRIMARY KEY AUTOINCREMENT,
            id TEXT NOT NULL UNIQUE,
            collection INTEGER NOT NULL,
            created INTEGER NOT NULL,
            cancelled INTEGER NOT NULL DEFAULT 0
        ) STRICT""",
    ),
    (
        "ALTER TABLE members ADD COLUMN turn INTEGER NOT NULL DEFAULT 0",
        "CREATE INDEX members_in_turn ON members (turn, seq) WHERE status = 'in_progress'",
        """CREATE INDEX members_in_queues ON members (coalesce(batch, collection), turn)
            WHERE status = 'in_progress'""",
        "CREATE INDEX members_taken ON members (worker, turn) WHERE worker IS NOT NULL",
    ),
)
"""Statements by schema version; ``PRAGMA user_version`` says how many sets a file has seen."""

Result = TypeVar("Result")
P = ParamSpec("P")


class Database:
    """The open file. Raises StartError when it cannot be created, read or written."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / FILE_NAME
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="hookline-catalog")
        self._opened: sqlite3.Connection | None = None

    async def open(self) -> None:
        """Opens the file, and brings an older one up to date."""
        try:
            await self._in_thread(self._open)
        except (OSError, sqlite3.Error, StartError) as error:
            self._thread.shutdown(wait=False)
            raise StartError(
                f"Cannot use {self.path}, which keeps the collections of documents: {error}. "
                "Make it readable and writable, restore it, or move it away to start afresh."
            ) from error

    async def close(self) -> None:
        """Closes the file once what is under way is done."""
        connection, self._opened = self._connection, None
        await self._in_thread(connection.close)
        self._thread.shutdown(wait=False)

    @property
    def _connection(self) -> sqlite3.Connection:
        if self._opened is None:
            raise KnowledgeUnavailable(
                "The collections are not open: the plugin 'knowledge' could not start, or the "
                "server ends. GET /health says more."
            )
        return self._opened

    async def read(
        self,
        work: Callable[Concatenate[sqlite3.Connection, P], Result],
        *args: P.args,
        **named: P.kwargs,
    ) -> Result:
        """Runs something that changes nothing."""
        connection = self._connection
        return await self._in_thread(lambda: work(connection, *args, **named))

    async def write(
        self,
        work: Callable[Concatenate[sqlite3.Connection, P], Result],
        *args: P.args,
        **named: P.kwargs,
    ) -> Result:
        """Runs a change as one transaction: all of it, or nothing where it raises, as for a full
        disk StorageFull."""
        connection = self._connection
        with telling_of_full_disk(self.path.parent):
            return await self._in_thread(
                lambda: _transaction(connection, lambda db: work(db, *args, **named))
            )

    async def _in_thread(self, work: Callable[[], Result]) -> Result:
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)

    def _open(self) -> None:
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        connection = sqlite3.connect(
            self.path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False
        )
        connection.row_factory = sqlite3.Row
        try:
            connection.execute("PRAGMA synchronous = NORMAL")
            _switch_to_wal(connection)
            _transaction(connection, _migrate)
        except BaseException:
            connection.close()
            raise
        self._opened = connection


def _transaction(
    connection: sqlite3.Connection, work: Callable[[sqlite3.Connection], Result]
) -> Result:
    connection.execute("BEGIN IMMEDIATE")
    try:
        result = work(connection)
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:  # SQLite itself ends one that finds the disk full
            connection.execute("ROLLBACK")
        raise
    return result


def _switch_to_wal(connection: sqlite3.Connection) -> None:
    deadline = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            # SQLite does not wait for its turn here, so first openers at once would fail.
            busy = error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY
            if not busy or time.monotonic() > deadline:
                raise
            time.sleep(0.01)


def _migrate(connection: sqlite3.Connection) -> None:
    ((version,),) = connection.execute("PRAGMA user_version").fetchall()
    if version > len(MIGRATIONS):
        raise StartError(f"a newer Hookline wrote it (schema {version})")
    for statement in (one for step in MIGRATIONS[version:] for one in step):
        connection.execute(statement)
    connection.execute(f"PRAGMA user_version = {len(MIGRATIONS)}")
