"""The embedder's threads: order, turns, cancelling, failures, the end."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

import pytest

from hookline_knowledge.embedders import workers
from hookline_knowledge.embedders.workers import EmbedderBusy, Workers
from hookline_knowledge.problems import KnowledgeUnavailable


@dataclass
class Upper:
    """Work that is held up while ``free`` is not set, and that fails on one text."""

    free: threading.Event = field(default_factory=threading.Event)
    begun: threading.Event = field(default_factory=threading.Event)
    seen: list[str] = field(default_factory=list)

    def __call__(self, text: str) -> str:
        self.seen.append(text)
        self.begun.set()
        assert self.free.wait(10)
        if text == "broken":
            raise ValueError("cannot read this")
        return text.upper()

    async def has_begun(self) -> None:
        assert await asyncio.to_thread(self.begun.wait, 10)


@pytest.fixture
async def work() -> Upper:
    return Upper()


@pytest.fixture
async def one(work: Upper) -> AsyncIterator[Workers[str]]:
    """A single thread, so that there is one order."""
    made = Workers(work, threads=1, name="test")
    yield made
    work.free.set()
    await made.close()


async def waiting(pool: Workers[str], *texts: str, kind: workers.Kind) -> asyncio.Task[list[str]]:
    """An order that is in the queue."""
    task = asyncio.create_task(pool.run(texts, kind))
    await asyncio.sleep(0)
    return task


async def test_results_come_in_order(work: Upper) -> None:
    work.free.set()
    pool = Workers(work, threads=3, name="test")
    texts = [f"text {number}" for number in range(50)]
    assert await pool.run(texts, "document") == [text.upper() for text in texts]
    assert await pool.run([], "query") == []
    await pool.close()


async def test_queries_come_first_and_callers_take_turns(work: Upper, one: Workers[str]) -> None:
    long = await waiting(one, "a1", "a2", "a3", "a4", kind="document")
    await work.has_begun()
    short = await waiting(one, "b1", kind="document")
    query = await waiting(one, "q", kind="query")
    work.free.set()
    await asyncio.gather(long, short, query)
    assert work.seen == ["a1", "q", "a2", "b1", "a3", "a4"]


async def test_cancelling_ends_an_order_between_texts(work: Upper, one: Workers[str]) -> None:
    left = await waiting(one, "a1", "a2", "a3", kind="document")
    await work.has_begun()
    left.cancel()
    with pytest.raises(asyncio.CancelledError):
        await left
    work.free.set()
    assert await one.run(["b"], "document") == ["B"]
    assert work.seen == ["a1", "b"]


async def test_a_failure_is_its_callers_only(work: Upper, one: Workers[str]) -> None:
    work.free.set()
    good = await waiting(one, "a", "b", "c", kind="document")
    with pytest.raises(ValueError, match="cannot read this"):
        await one.run(["x", "broken", "y", "z"], "document")
    assert await good == ["A", "B", "C"]


async def test_too_many_texts_are_refused(
    work: Upper, one: Workers[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workers, "MOST_TEXTS", 3)
    first = await waiting(one, "a", "b", "c", "d", kind="document")
    await work.has_begun()
    with pytest.raises(EmbedderBusy, match="embedded: 3 texts") as refused:
        await one.run(["e"], "document")
    assert refused.value.status == 503
    assert refused.value.headers["Retry-After"]
    work.free.set()
    assert await first == ["A", "B", "C", "D"]


async def test_closing_ends_what_waits(work: Upper) -> None:
    pool = Workers(work, threads=1, name="test")
    left = await waiting(pool, "a", "b", kind="document")
    await work.has_begun()
    closing = asyncio.create_task(pool.close())
    await asyncio.sleep(0)
    work.free.set()
    await closing
    with pytest.raises(asyncio.CancelledError):
        await left
    with pytest.raises(KnowledgeUnavailable, match="closed"):
        await pool.run(["c"], "query")
