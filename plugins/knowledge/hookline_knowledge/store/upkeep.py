"""Keeps tables quick without anybody asking: joins small files, brings indexes up to date."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from typing import Protocol

from hookline_knowledge.store.memory import give_back

log = logging.getLogger(__name__)

QUIET_SECONDS = 2.0
"""A table is tidied once nothing was written to it for so long."""
MOST_WRITES = 32
"""And during a long ingest after so many writes: each adds a file, and rows no index holds yet."""


class Tidied(Protocol):
    """A table that can be tidied."""

    name: str

    async def tidy(self) -> None:
        """Does it, now."""
        ...


class Upkeep:
    """Tidies tables in the background, one at a time."""

    def __init__(self, *, quiet: float = QUIET_SECONDS, most_writes: int = MOST_WRITES) -> None:
        self._quiet = quiet
        self._most_writes = most_writes
        self._writes: dict[Tidied, int] = {}
        self._news = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begins to watch."""
        self._task = asyncio.create_task(self._watch())

    async def stop(self) -> None:
        """Ends, also what is being tidied; it leaves the table as it was."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    def note(self, table: Tidied) -> None:
        """Something was written."""
        self._writes[table] = self._writes.get(table, 0) + 1
        self._news.set()

    async def _watch(self) -> None:
        while True:
            await self._news.wait()
            while await self._goes_on():
                pass
            for table in list(self._writes):
                del self._writes[table]
                await self._tidy(table)

    async def _goes_on(self) -> bool:
        """Waits for the next write; False once there are none, or enough."""
        self._news.clear()
        if max(self._writes.values(), default=0) >= self._most_writes:
            return False
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._quiet):  # wait_for can lose the cancelling of `stop`
                await self._news.wait()
            return True
        return False

    async def _tidy(self, table: Tidied) -> None:
        try:
            await table.tidy()
        except Exception:
            log.exception("the table %s could not be tidied; that is tried again later", table.name)
        await asyncio.to_thread(give_back)
