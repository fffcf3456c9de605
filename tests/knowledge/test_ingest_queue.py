"""Files on their way into collections: interrupted, killed, unwanted, superseded."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from hookline_knowledge import ingest
from hookline_knowledge.catalog import Chunking
from hookline_knowledge.chunks import Chunk
from hookline_knowledge.worker import Worker


def base_of(at: Any) -> Any:
    return at.server.kernel.plugins.found["knowledge"].instance.base


async def begun(at: Any, *texts: str) -> tuple[str, list[str]]:
    """A collection whose files wait for their vectors."""
    at.embedder.gate.clear()
    files = [await at.file(text, f"{place}.txt") for place, text in enumerate(texts)]
    store = await at.openai.vector_stores.create(name="Notes", file_ids=files)
    async with asyncio.timeout(20):
        while not base_of(at).reader._running:
            await asyncio.sleep(0.01)
    return store.id, files


async def test_a_server_that_stops_goes_on_when_it_starts_again(reader: Any) -> None:
    async with reader() as at:
        store, _ = await begun(at, "one text", "another text", "a third text")
    async with reader() as at:
        await at.until_idle()
        counts = (await at.openai.vector_stores.retrieve(store)).file_counts
        assert (counts.completed, counts.total) == (3, 3)
        assert await at.rows() == 3


async def test_a_server_that_waits_for_its_requests_reads_no_files(
    reader: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ingest, "POLL_SECONDS", 0.01)
    async with reader() as at:
        store, _ = await begun(at, "one text", "another text")
        at.server.kernel.stopping = True
        async with asyncio.timeout(20):
            while base_of(at).reader._running:
                await asyncio.sleep(0.01)
        at.server.kernel.stopping = False
        counts = (await at.openai.vector_stores.retrieve(store)).file_counts
        assert (counts.completed, counts.in_progress, counts.failed) == (0, 2, 0)


async def test_large_files_do_not_hold_up_small_ones(
    reader: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ingest, "SMALL_BYTES", 50)
    async with reader() as at:
        usual = at.embedder.embed

        async def embed(texts: Any, **more: Any) -> Any:
            if texts[0].startswith("large"):
                await asyncio.Event().wait()
            return await usual(texts, **more)

        at.embedder.embed = embed
        files = [await at.file(f"large {n} " * 20, f"{n}.txt") for n in range(3)]
        store = (await at.openai.vector_stores.create(name="Notes", file_ids=files)).id
        while len(base_of(at).reader._running) < 2:
            await asyncio.sleep(0.01)
        small = await at.file("a little text")
        added = await at.openai.vector_stores.files.create_and_poll(
            small, vector_store_id=store, poll_interval_ms=20
        )
        assert added.status == "completed"
        counts = (await at.openai.vector_stores.retrieve(store)).file_counts
        assert (counts.completed, counts.in_progress) == (1, 3)


async def test_what_a_killed_process_had_begun_is_done_anew(reader: Any) -> None:
    async with reader() as at:
        store, _ = await begun(at, "one text")
    async with reader() as at:
        await at.until_idle()
        base = base_of(at)
        # As a process leaves it that is killed between the store's commit and the catalog's.
        (member,) = await base.library.add_members(
            await base.library.collection(store),
            [(await at.file("a text of which half is there"), {}, Chunking(50, 0))],
        )
        base.reader.wake()
        await at.until_idle()
        await base.library.catalog.write(_set_back, member.seq, "dead")
        chunk = Chunk("a text that nobody is to see", "", 0, 0, 28)
        await base.store.add("words", 1, member.seq, [chunk], [[1.0] + [0.0] * 255])
        assert await at.rows() == 3
        await base.library.take_over()
        base.reader.wake()
        await at.until_idle()
        await at.until_rows(2)
        page = await at.openai.vector_stores.search(store, query="text half there nobody")
        assert not [result for result in page.data if "nobody" in result.content[0].text]


def _set_back(connection: Any, seq: int, worker: str) -> None:
    connection.execute(
        "UPDATE members SET status = 'in_progress', worker = ? WHERE seq = ?", (worker, seq)
    )


async def test_what_is_removed_while_it_is_read_leaves_nothing(reader: Any) -> None:
    async with reader() as at:
        store, (one, two, three) = await begun(at, "one text", "another text", "a third text")
        await at.openai.vector_stores.files.delete(one, vector_store_id=store)
        await at.openai.files.delete(two)
        at.embedder.gate.set()
        await at.until_idle()
        left = await at.openai.vector_stores.files.list(store)
        assert [(member.id, member.status) for member in left.data] == [(three, "completed")]
        await at.until_rows(1)
        store, _ = await begun(at, "a fourth text")
        await at.openai.vector_stores.delete(store)
        at.embedder.gate.set()
        async with asyncio.timeout(20):
            while base_of(at).reader._running:
                await asyncio.sleep(0.01)
        await at.until_rows(1)


async def test_a_new_cut_replaces_the_old_one_when_it_is_complete(reader: Any) -> None:
    text = " ".join(f"Sentence number {n} is here." for n in range(60))
    cut = {
        "type": "static",
        "static": {"max_chunk_size_tokens": 100, "chunk_overlap_tokens": 0},
    }
    async with reader() as at:
        stores = at.openai.vector_stores
        store = await at.collection("Notes", long=text)
        (member,) = (await stores.files.list(store)).data
        before = await at.rows()
        at.embedder.gate.clear()
        await stores.files.create(store, file_id=member.id, chunking_strategy=cut)
        reading = await stores.files.retrieve(member.id, vector_store_id=store)
        assert reading.status == "in_progress"
        assert (await stores.search(store, query="Sentence number 7")).data  # seen until then
        at.embedder.gate.set()
        await at.until_idle()
        assert await at.rows() > before
        content = (await stores.files.content(member.id, vector_store_id=store)).data
        assert "".join(part.text for part in content) == text


async def test_many_files_at_once(reader: Any) -> None:
    async with reader() as at:
        files = [await at.file(f"This is file number {n}.") for n in range(40)]
        done = await at.openai.vector_stores.file_batches.create_and_poll(
            (await at.openai.vector_stores.create(name="n")).id, file_ids=files, poll_interval_ms=50
        )
        assert done.file_counts.completed == 40
        assert await at.rows() == 40
        asking = [at.openai.vector_stores.search("n", query=f"file number {n}") for n in range(10)]
        for page in await asyncio.gather(*asking):
            assert page.data


LIVES = """
import sys, time
from pathlib import Path
from hookline_knowledge.worker import Worker
worker = Worker(Path(sys.argv[1]))
worker.begin()
print(worker.id, flush=True)
time.sleep(60)
"""


def test_who_is_alive(tmp_path: Path) -> None:
    mine = Worker(tmp_path)
    mine.begin()
    with subprocess.Popen(
        [sys.executable, "-c", LIVES, str(tmp_path)], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        other = process.stdout.readline().strip()
        assert mine.is_alive(other) and mine.is_alive(mine.id)
        process.send_signal(signal.SIGKILL)
    assert not mine.is_alive(other) and not mine.is_alive("nobody")
    mine.clean_up()
    assert [path.name for path in tmp_path.iterdir()] == [mine.id]
    mine.end()
    assert list(tmp_path.iterdir()) == []
