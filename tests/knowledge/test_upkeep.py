"""Tables are tidied once nobody writes, or after enough writes, and a failure harms nothing."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

import pytest

from hookline_knowledge.store.upkeep import Upkeep


@dataclass(eq=False)
class Table:
    name: str
    tidied: int = 0
    fails: bool = False
    done: asyncio.Event = field(default_factory=asyncio.Event)

    async def tidy(self) -> None:
        self.tidied += 1
        self.done.set()
        if self.fails:
            self.fails = False
            raise RuntimeError("the disk is full")

    async def is_tidied(self) -> None:
        async with asyncio.timeout(10):
            await self.done.wait()
        self.done.clear()


@pytest.fixture
async def upkeep() -> AsyncIterator[Upkeep]:
    made = Upkeep(quiet=0.01, most_writes=3)
    made.start()
    yield made
    await made.stop()


async def test_a_table_is_tidied_once_after_its_writes(upkeep: Upkeep) -> None:
    one, other = Table("one"), Table("other")
    for _ in range(2):
        upkeep.note(one)
    upkeep.note(other)
    await one.is_tidied()
    await other.is_tidied()
    assert (one.tidied, other.tidied) == (1, 1)


async def test_enough_writes_do_not_wait_for_quiet() -> None:
    upkeep = Upkeep(quiet=3600, most_writes=3)
    upkeep.start()
    table = Table("one")
    for _ in range(3):
        upkeep.note(table)
    await table.is_tidied()
    await upkeep.stop()


async def test_a_failure_is_logged_and_tried_again_later(
    upkeep: Upkeep, caplog: pytest.LogCaptureFixture
) -> None:
    table = Table("one", fails=True)
    upkeep.note(table)
    await table.is_tidied()
    assert "one could not be tidied" in caplog.text
    upkeep.note(table)
    await table.is_tidied()
    assert table.tidied == 2


async def test_stopping_waits_for_nothing() -> None:
    upkeep = Upkeep(quiet=3600)
    await upkeep.stop()
    upkeep.start()
    upkeep.note(Table("one"))
    await asyncio.sleep(0)
    upkeep.note(Table("other"))
    async with asyncio.timeout(10):
        await upkeep.stop()
