"""Pages that were read, kept for a while in a SQLite file of bounded size."""

from __future__ import annotations

import asyncio
import json
import logging
import sqlite3
import time
import zlib
from collections.abc import Callable
from contextlib import closing
from dataclasses import asdict
from datetime import date
from pathlib import Path
from typing import TypeVar

from hookline_websearch.page import Page

Argument = TypeVar("Argument")
Answer = TypeVar("Answer")

log = logging.getLogger(__name__)

FILE_NAME = "pages.db"
VERSION = 1
"""Of what a row holds; a file of another version is emptied."""

TABLE = """CREATE TABLE IF NOT EXISTS pages (
    url TEXT PRIMARY KEY, page BLOB NOT NULL, size INTEGER NOT NULL, read REAL NOT NULL,
    used REAL NOT NULL
) STRICT, WITHOUT ROWID"""

TRIM = """DELETE FROM pages WHERE url IN (SELECT url FROM (
    SELECT url, sum(size) OVER (ORDER BY used DESC, url) AS total, row_number() OVER (
    ORDER BY used DESC, url) AS place FROM pages) WHERE total > ? OR place > ?)"""

ENTRIES_MAX = 20_000
CLEAN_EVERY = 20
"""Pages after which those too old or too many are forgotten."""


class PageCache:
    """Pages by the URL that was asked for.

    ``rules`` says what they were read under; a file from under other rules is emptied, so that
    what may no longer be read is no longer answered with. A file that cannot be used is a warning,
    not an error: pages are then read again each time.
    """

    def __init__(
        self,
        folder: Path,
        *,
        seconds: float,
        most_bytes: int,
        rules: str = "",
        now: Callable[[], float] = time.time,
    ) -> None:
        self._path = folder / FILE_NAME
        self._seconds = seconds
        self._most = most_bytes
        self._rules = rules
        self._now = now
        self._kept = 0
        self._one_at_a_time = asyncio.Lock()
        self._database: sqlite3.Connection | None = None

    async def open(self) -> None:
        """Opens the file, or makes it."""
        if self._seconds > 0:
            self._database = await asyncio.to_thread(self._open)

    async def close(self) -> None:
        """Closes the file."""
        async with self._one_at_a_time:
            database, self._database = self._database, None
            if database is not None:
                await asyncio.to_thread(database.close)

    async def get(self, url: str) -> Page | None:
        """A page that was read not too long ago."""
        async with self._one_at_a_time:
            return await asyncio.to_thread(self._guarded, self._get, url)

    async def keep(self, page: Page) -> None:
        """Keeps a page, and forgets the ones not used for longest where there are too many."""
        async with self._one_at_a_time:
            await asyncio.to_thread(self._guarded, self._keep, page)

    def _guarded(
        self, step: Callable[[sqlite3.Connection, Argument], Answer], argument: Argument
    ) -> Answer | None:
        if self._database is None:
            return None
        try:
            return step(self._database, argument)
        except (sqlite3.Error, ValueError, TypeError, zlib.error) as error:
            log.warning("the cache of pages fails, and is left alone: %s", error)
            return None

    def _open(self) -> sqlite3.Connection | None:
        try:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            database = sqlite3.connect(self._path, isolation_level=None, check_same_thread=False)
            database.execute("PRAGMA journal_mode = WAL")
            database.execute("PRAGMA synchronous = NORMAL")
            database.execute("PRAGMA auto_vacuum = INCREMENTAL")
            self._begin(database)
        except (OSError, sqlite3.Error) as error:
            log.warning("pages are not cached, because %s cannot be used: %s", self._path, error)
            return None
        return database

    def _begin(self, database: sqlite3.Connection) -> None:
        rules = zlib.crc32(f"{VERSION} {self._rules}".encode()) >> 1
        ((known,),) = database.execute("PRAGMA user_version").fetchall()
        if known != rules:
            database.execute("DROP TABLE IF EXISTS pages")
            database.execute(f"PRAGMA user_version = {rules}")
        database.execute(TABLE)

    def _get(self, database: sqlite3.Connection, url: str) -> Page | None:
        row = database.execute(
            "SELECT page FROM pages WHERE url = ? AND read > ?", (url, self._now() - self._seconds)
        ).fetchone()
        if row is None:
            return None
        database.execute("UPDATE pages SET used = ? WHERE url = ?", (self._now(), url))
        fields = json.loads(zlib.decompress(row[0]))
        when = fields.pop("date")
        return Page(**fields, date=date.fromisoformat(when) if when else None)

    def _keep(self, database: sqlite3.Connection, page: Page) -> None:
        fields = asdict(page) | {"date": page.date.isoformat() if page.date else ""}
        packed = zlib.compress(json.dumps(fields).encode())
        if len(packed) > self._most:
            return
        now = self._now()
        with closing(
            database.execute(
                "INSERT OR REPLACE INTO pages VALUES (?, ?, ?, ?, ?)",
                (page.url, packed, len(packed), now, now),
            )
        ):
            self._kept += 1
        if self._kept % CLEAN_EVERY == 1:
            self._clean(database)

    def _clean(self, database: sqlite3.Connection) -> None:
        database.execute("DELETE FROM pages WHERE read <= ?", (self._now() - self._seconds,))
        database.execute(TRIM, (self._most, ENTRIES_MAX))
        database.execute("PRAGMA incremental_vacuum")
