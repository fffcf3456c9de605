"""Analysts that are not needed any more before they are ready."""

from __future__ import annotations

import asyncio

import psutil

from hookline_structured.analyst import Analysts


def children() -> list[psutil.Process]:
    return [p for p in psutil.Process().children() if "hookline_structured" in str(p.cmdline())]


async def test_one_that_is_starting_ends_with_its_server() -> None:
    before = len(children())
    analysts = Analysts(seconds=1.5)
    starting = asyncio.create_task(analysts.start())
    while len(children()) == before:
        await asyncio.sleep(0.005)
    starting.cancel()
    await asyncio.wait([starting])
    await analysts.close()
    assert len(children()) == before
