"""The file that the counts are in."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from hookline import Caller, Usage

TABLE = """CREATE TABLE IF NOT EXISTS ledger (
    id TEXT PRIMARY KEY,
    caller TEXT NOT NULL,
    requests INTEGER NOT NULL,
    prompt_tokens INTEGER NOT NULL,
    completion_tokens INTEGER NOT NULL
) STRICT"""
ADD = """INSERT INTO ledger VALUES (?, ?, 1, ?, ?)
ON CONFLICT (id) DO UPDATE SET
    caller = excluded.caller,
    requests = requests + 1,
    prompt_tokens = prompt_tokens + excluded.prompt_tokens,
    completion_tokens = completion_tokens + excluded.completion_tokens"""
ALL = """SELECT caller, requests, prompt_tokens, completion_tokens FROM ledger
ORDER BY prompt_tokens + completion_tokens DESC"""


class Book:
    """Counts by caller, in SQLite: exact whatever threads and processes add at once."""

    def __init__(self, path: Path) -> None:
        self._db = sqlite3.connect(path, check_same_thread=False, isolation_level=None)
        self._db.row_factory = sqlite3.Row
        self._db.execute("PRAGMA journal_mode = WAL")
        self._db.execute(TABLE)

    def add(self, caller: Caller, usage: Usage) -> None:
        """One more request."""
        values = (caller.id, caller.name, usage.prompt_tokens, usage.completion_tokens)
        self._db.execute(ADD, values)

    def entries(self) -> list[dict[str, str | int]]:
        """One entry a caller, the greatest user first."""
        return [dict(row) for row in self._db.execute(ALL)]

    def close(self) -> None:
        """Closes the file."""
        self._db.close()
