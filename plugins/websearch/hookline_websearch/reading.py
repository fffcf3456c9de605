"""Reading as many of the pages that were found as are wanted, and no more."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Protocol

from hookline_websearch.page import Page
from hookline_websearch.provider import Hit

LATE = 0.5
"""Share of the time after which further pages are begun beside those that are still missing."""

SPARE = 2
"""How many those are."""


class Reads(Protocol):
    """What reads pages; `hookline_websearch.reader.Reader` does."""

    async def read(self, urls: Sequence[str], seconds: float) -> list[Page]:
        """The pages at these addresses, those that could be read in so many seconds."""
        ...


async def read_some(
    reader: Reads, hits: Mapping[str, Hit], wanted: int, seconds: float
) -> dict[str, Page]:
    """The pages of the first hits, by their keys, until so many have text.

    The next hit is tried for each page that cannot be read, and two more where pages are late.
    """
    loop = asyncio.get_running_loop()
    end = loop.time() + seconds
    waiting = iter(hits.items())
    tasks: dict[asyncio.Task[list[Page]], str] = {}
    pages: dict[str, Page] = {}

    def begin(count: int) -> None:
        for key, hit in islice(waiting, count):
            read = reader.read([hit.url], max(end - loop.time(), 0))
            tasks[asyncio.create_task(read)] = key

    begin(wanted)
    late: float | None = seconds * LATE
    try:
        while tasks and wanted:
            done, _ = await asyncio.wait(tasks, timeout=late, return_when=asyncio.FIRST_COMPLETED)
            if not done:
                late = None
                begin(SPARE)
            for task in done:
                key, (page,) = tasks.pop(task), task.result()
                if wanted:
                    pages[key] = page
                    wanted -= bool(page.text)
                    begin(not page.text)
    finally:
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
    return pages
