"""How many pages are read, and which."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from hookline_websearch import Hit
from hookline_websearch.page import Page
from hookline_websearch.reading import SPARE, read_some


class Reader:
    """Reads what its address says: ``ok``, ``bad``, or ``slow``."""

    def __init__(self) -> None:
        self.begun: list[str] = []
        self.cancelled: list[str] = []

    async def read(self, urls: Sequence[str], seconds: float) -> list[Page]:
        (url,) = urls
        self.begun.append(url)
        try:
            await asyncio.sleep(seconds if url.startswith("slow") else 0)
        except asyncio.CancelledError:
            self.cancelled.append(url)
            raise
        return [Page(url, text="text" if url.startswith("ok") else "")]


def hits(*urls: str) -> dict[str, Hit]:
    return {url: Hit(url) for url in urls}


async def test_only_as_many_as_wanted_are_begun() -> None:
    reader = Reader()
    pages = await read_some(reader, hits("ok1", "ok2", "ok3"), 2, 5)
    assert reader.begun == sorted(pages) == ["ok1", "ok2"]
    assert await read_some(reader, {}, 2, 5) == {}


async def test_the_next_one_is_tried_for_each_that_fails() -> None:
    reader = Reader()
    pages = await read_some(reader, hits("bad1", "ok1", "bad2", "ok2", "ok3"), 2, 5)
    assert reader.begun == ["bad1", "ok1", "bad2", "ok2"]
    assert [url for url, page in pages.items() if page.text] == ["ok1", "ok2"]


async def test_further_ones_are_begun_when_some_are_late() -> None:
    reader = Reader()
    pages = await read_some(reader, hits("ok1", "slow1", "ok2", "ok3", "ok4"), 2, 2)
    assert reader.begun == ["ok1", "slow1", "ok2", "ok3"] and len(reader.begun) == 2 + SPARE
    assert reader.cancelled == ["slow1"]
    assert "ok1" in pages and len([page for page in pages.values() if page.text]) == 2


async def test_what_nobody_waits_for_is_stopped() -> None:
    reader = Reader()
    reading = asyncio.create_task(read_some(reader, hits("slow1", "slow2"), 2, 60))
    while len(reader.begun) < 2:
        await asyncio.sleep(0)
    reading.cancel()
    await asyncio.wait([reading])
    assert reader.cancelled == ["slow1", "slow2"]
