"""A disk without room: what is told, and that all goes on once there is room again."""

from __future__ import annotations

import asyncio
import sqlite3
from pathlib import Path
from typing import Any

import openai
import pytest

from hookline_knowledge import ingest
from hookline_knowledge.blobs import Blobs
from hookline_knowledge.catalog import Database, collections, members
from hookline_knowledge.problems import StorageFull


def fill(connection: sqlite3.Connection) -> None:
    """Lets the catalog grow no further, as a full disk would."""
    (pages,) = connection.execute("PRAGMA page_count").fetchone()
    connection.execute(f"PRAGMA max_page_count = {pages}")


def empty(connection: sqlite3.Connection) -> None:
    connection.execute("PRAGMA max_page_count = 1000000")


async def test_a_full_disk_is_told_and_harms_nothing(reader: Any) -> None:
    async with reader() as at:
        catalog = at.server.kernel.plugins.found["knowledge"].instance.base.library.catalog
        await at.collection("Notes", leave="Annual leave is thirty days.")
        await catalog.read(fill)
        with pytest.raises(openai.InternalServerError, match="no room left") as refused:
            for _ in range(50):
                await at.openai.vector_stores.create(name="Other", description="x" * 500)
        assert (refused.value.status_code, refused.value.code) == (503, "storage_full")
        assert refused.value.response.headers["x-should-retry"] == "false"
        assert (await at.openai.vector_stores.search("Notes", query="leave")).data
        await catalog.read(empty)
        assert (await at.openai.vector_stores.create(name="Other")).name == "Other"


def test_an_upload_that_does_not_fit_leaves_nothing(tmp_path: Path) -> None:
    async def parts() -> Any:
        yield b"x"
        raise OSError(28, "No space left on device")

    blobs = Blobs(tmp_path / "files", tmp_path)
    with pytest.raises(StorageFull, match="no room left"):
        asyncio.run(blobs.receive(parts(), 1000))
    assert list(tmp_path.iterdir()) == []


async def test_a_file_whose_end_could_not_be_noted_is_read_again(
    reader: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(ingest, "HOUSEKEEPING_SECONDS", 0.05)
    monkeypatch.setattr(ingest, "POLL_SECONDS", 0.02)
    usual, left = Database.write, 4

    async def write(self: Database, work: Any, *args: Any, **named: Any) -> Any:
        nonlocal left
        if work in (members.complete, members.fail, members.release) and left:
            left -= 1
            raise StorageFull("there is no room left")
        return await usual(self, work, *args, **named)

    monkeypatch.setattr(Database, "write", write)
    async with reader() as at:
        store = await at.collection("Notes", leave="Annual leave is thirty days.")
        assert left == 0 and "could not be noted" in caplog.text
        catalog = at.server.kernel.plugins.found["knowledge"].instance.base.library.catalog
        assert await catalog.read(members.workers) == []
        assert len(await catalog.read(collections.all_open)) == 1
        assert await at.rows() == 1
        assert (await at.openai.vector_stores.search(store, query="leave")).data
