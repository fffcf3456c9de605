"""What happens to a streamed request before its answer begins, and who hears of it.

Every refusal is to be a real status code, so a response is returned only when the jobs are queued.
But a web search takes seconds in which the client should see what happens: the first report of a
plugin begins the stream early.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Coroutine
from typing import Any

from hookline.exchange import Exchange, Report


class Preparation:
    """Work in a task of its own, with what it reports on the way."""

    def __init__(self, exchange: Exchange, work: Coroutine[Any, Any, None]) -> None:
        self._reports: list[Report] = []
        self._news = asyncio.Event()
        exchange.listener = self._hear
        self._task = asyncio.create_task(work)
        self._task.add_done_callback(lambda _: self._news.set())

    async def done_in_silence(self) -> bool:
        """Waits for the end or for the first report: True when it ended without one.

        Raises what the work raised.
        """
        await self._news.wait()
        if self._reports:
            return False
        await self._task
        return True

    async def reports(self) -> AsyncGenerator[Report, None]:
        """What is reported, until the work has ended. Raises what it raised."""
        while not self._task.done() or self._reports:
            await self._news.wait()
            self._news.clear()
            heard, self._reports = self._reports, []
            for report in heard:
                yield report
        await self._task

    async def cancel(self) -> None:
        """Ends the work where it stands."""
        if not self._task.done():
            self._task.cancel()
            await asyncio.wait([self._task])

    def _hear(self, report: Report) -> None:
        self._reports.append(report)
        self._news.set()
