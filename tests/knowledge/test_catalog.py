"""The catalog: what is kept, in which order, and what two processes see of each other."""

from __future__ import annotations

import asyncio
import signal
import sqlite3
import subprocess
import sys
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from hookline import StartError
from hookline_knowledge.catalog import (
    Chunking,
    Cursor,
    Database,
    batches,
    collections,
    files,
    members,
)
from hookline_knowledge.catalog.database import FILE_NAME, MIGRATIONS
from hookline_knowledge.problems import KnowledgeUnavailable

CUT = Chunking(200, 40)


@pytest.fixture
async def catalog(tmp_path: Path) -> AsyncIterator[Database]:
    database = Database(tmp_path)
    await database.open()
    yield database
    await database.close()


async def add_file(catalog: Database, id: str, **values: Any) -> str:
    about = {"name": f"{id}.txt", "purpose": "user_data", "bytes": 1, "hash": id, "created": 0}
    return (await catalog.write(files.add, id=id, **{**about, **values})).id


async def add_collection(catalog: Database, name: str = "n") -> int:
    values: dict[str, Any] = {"metadata": {}, "created": 0, "active": 0}
    made = await catalog.write(collections.add, id=f"vs_{name}", name=name, **values)
    return made.number


async def add_member(catalog: Database, collection: int, file: str, **more: Any) -> Any:
    values = {"attributes": {}, "chunking": CUT, "now": 0, **more}
    return await catalog.write(members.add, collection, file, **values)


async def taken(catalog: Database, worker: str = "me") -> Any:
    return await catalog.write(members.take, worker)


async def states(catalog: Database) -> dict[int, str]:
    def read(db: sqlite3.Connection) -> dict[int, str]:
        return {row["seq"]: row["status"] for row in db.execute("SELECT * FROM members")}

    return await catalog.read(read)


async def test_a_member_is_taken_once(catalog: Database, tmp_path: Path) -> None:
    other = Database(tmp_path)
    await other.open()
    number = await add_collection(catalog)
    for place in range(20):
        await add_member(catalog, number, await add_file(catalog, f"f{place}"))
    both = [(catalog, "me"), (other, "you")] * 12
    got = await asyncio.gather(*(taken(database, worker) for database, worker in both))
    seqs = [member.seq for member in got if member is not None]
    assert len(seqs) == len(set(seqs)) == 20 and got.count(None) == 4
    mine = await catalog.read(members.taken, "me")
    assert set(await catalog.read(members.workers)) == {"me", "you"}
    await other.write(members.release, mine)
    assert (await taken(other, "you")).seq == min(mine)
    await other.close()


async def test_the_way_of_a_member(catalog: Database) -> None:
    number = await add_collection(catalog)
    member = await add_member(catalog, number, await add_file(catalog, "a"))
    assert await taken(catalog) == member
    assert await catalog.read(members.wanted, "me") == {member.seq}
    await catalog.write(members.complete, member, "somebody else", 5)
    assert (await states(catalog))[member.seq] == "in_progress"
    await catalog.write(members.complete, member, "me", 5)
    found = await catalog.read(members.find, number, "a")
    assert found is not None and found.status == "completed" and found.usage_bytes == 5
    assert await catalog.read(members.taken, "me") == []
    await catalog.write(members.remove, number, "a")
    assert await catalog.read(members.find, number, "a") is None
    assert await catalog.read(members.deleting, 10) == [member.seq]
    await catalog.write(members.forget, [member.seq])
    assert await states(catalog) == {}


async def test_what_is_being_read_is_not_forgotten_under_its_reader(catalog: Database) -> None:
    number = await add_collection(catalog)
    member = await add_member(catalog, number, await add_file(catalog, "a"))
    await taken(catalog)
    await catalog.write(members.remove, number, "a")
    assert await catalog.read(members.wanted, "me") == set()
    assert await catalog.read(members.deleting, 10) == []  # its reader may just add rows
    await catalog.write(members.complete, member, "me", 5)
    await catalog.write(members.release, [member.seq])
    assert await catalog.read(members.deleting, 10) == [member.seq]


async def test_newer_versions_replace_older_ones(catalog: Database) -> None:
    number, other = await add_collection(catalog), await add_collection(catalog, "other")
    same = await add_file(catalog, "same", hash="1", origin=None)
    path = await add_file(catalog, "path", hash="2", origin="/a.txt")
    new = await add_file(catalog, "new", hash="1", origin="/a.txt")
    apart = await add_file(catalog, "apart", hash="3")
    for place in ((number, same), (number, path), (number, apart), (other, same)):
        member = await add_member(catalog, *place)
        await taken(catalog)
        await catalog.write(members.complete, member, "me", 1)
    newest = await add_member(catalog, number, new)
    await taken(catalog)
    assert set((await states(catalog)).values()) == {"completed", "in_progress"}
    await catalog.write(members.complete, newest, "me", 1)
    after = await states(catalog)
    assert list(after.values()) == ["deleting", "deleting", "completed", "completed", "completed"]
    assert await catalog.read(files.outdated, "/a.txt") == [path]


async def test_of_two_equal_ones_the_later_stays_also_when_it_is_done_first(
    catalog: Database,
) -> None:
    number = await add_collection(catalog)
    for id in ("a", "b"):
        await add_member(catalog, number, await add_file(catalog, id, hash="same"))
    first, second = await taken(catalog), await taken(catalog)
    await catalog.write(members.complete, second, "me", 1)
    await catalog.write(members.complete, first, "me", 1)
    assert await states(catalog) == {first.seq: "deleting", second.seq: "completed"}


async def test_adding_again(catalog: Database) -> None:
    number = await add_collection(catalog)
    file = await add_file(catalog, "a")
    member = await add_member(catalog, number, file)
    await taken(catalog)
    await catalog.write(members.complete, member, "me", 1)
    same = await add_member(catalog, number, file, attributes={"x": 1}, batch="b")
    assert same.seq == member.seq and same.attributes == {"x": 1} and same.batch == "b"
    cut = await add_member(catalog, number, file, chunking=Chunking(100, 0))
    assert await states(catalog) == {member.seq: "superseded", cut.seq: "in_progress"}
    assert set(await catalog.read(members.visible, [member.seq, cut.seq])) == {member.seq}
    await taken(catalog)
    await catalog.write(members.fail, cut, "me", "invalid_file", "broken")
    assert await states(catalog) == {member.seq: "deleting", cut.seq: "failed"}
    again = await add_member(catalog, number, file)
    assert again.status == "in_progress"


async def test_a_cancelled_batch(catalog: Database) -> None:
    number = await add_collection(catalog)
    batch = await catalog.write(batches.add, "vsfb_1", number, 0)
    for id in ("a", "b", "c"):
        await add_member(catalog, number, await add_file(catalog, id), batch=batch.id)
    done = await taken(catalog)
    await catalog.write(members.complete, done, "me", 7)
    await catalog.write(batches.cancel, batch.id)
    counts = await catalog.read(collections.batch_counts, batch.id)
    assert (counts.completed, counts.cancelled, counts.total) == (1, 2, 3)
    assert counts.usage_bytes == 7
    found = await catalog.read(batches.find, number, batch.id)
    assert found is not None and found.cancelled
    assert await taken(catalog) is None


async def test_a_cursor_keeps_its_place_when_its_item_changes(catalog: Database) -> None:
    number = await add_collection(catalog)
    for id in ("a", "b", "c"):
        await add_member(catalog, number, await add_file(catalog, id))
    first = await taken(catalog)
    await catalog.write(members.complete, first, "me", 1)
    cursor = Cursor(limit=5, newest_first=False, after="a")
    page = await catalog.read(members.page, cursor, collection=number, status="in_progress")
    assert [member.file for member in page.items] == ["b", "c"]
    with pytest.raises(KeyError, match="nobody"):
        await catalog.read(members.page, Cursor(after="nobody"), collection=number)


async def test_deleted_collections_go_when_they_are_empty(catalog: Database) -> None:
    number = await add_collection(catalog)
    member = await add_member(catalog, number, await add_file(catalog, "a"))
    await catalog.write(collections.empty, number, "deleting")
    assert await catalog.read(collections.find, "n") == []
    await catalog.write(collections.forget_deleted)
    await catalog.write(members.forget, [member.seq])
    await catalog.write(collections.forget_deleted)
    rows = await catalog.read(lambda db: db.execute("SELECT * FROM collections").fetchall())
    assert rows == []
    assert await add_collection(catalog) == number + 1


async def test_a_change_that_fails_changes_nothing(catalog: Database) -> None:
    def half(db: sqlite3.Connection) -> None:
        db.execute("INSERT INTO batches (id, collection, created) VALUES ('b', 1, 1)")
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await catalog.write(half)
    assert await catalog.read(batches.find, 1, "b") is None


async def test_a_file_that_cannot_be_used(tmp_path: Path) -> None:
    with pytest.raises(KnowledgeUnavailable):
        await Database(tmp_path).read(members.workers)
    (tmp_path / FILE_NAME).write_bytes(b"no database at all" * 100)
    with pytest.raises(StartError, match=FILE_NAME):
        await Database(tmp_path).open()
    (tmp_path / FILE_NAME).unlink()
    with sqlite3.connect(tmp_path / FILE_NAME) as newer:
        newer.execute("PRAGMA user_version = 99")
    newer.close()
    with pytest.raises(StartError, match="newer"):
        await Database(tmp_path).open()


async def names_taken(catalog: Database, most: int | None = None) -> list[str]:
    """All that wait, each taken and completed before the next."""
    names = []
    while member := await catalog.write(members.take, "me", None, most):
        await catalog.write(members.complete, member, "me", 1)
        names.append(member.file)
    return names


async def test_small_files_pass_large_ones_and_batches_take_turns(catalog: Database) -> None:
    number, other = await add_collection(catalog), await add_collection(catalog, "other")
    large = {"bytes": 50 << 20}
    for id in ("l1", "l2"):
        await add_member(catalog, number, await add_file(catalog, id, **large), batch="large")
    for id in ("a1", "a2", "a3"):
        await add_member(catalog, number, await add_file(catalog, id), batch="long")
    assert (await taken(catalog)).file == "a1"  # begun now, whatever comes
    for id in ("b1", "b2"):
        await add_member(catalog, other, await add_file(catalog, id))
    assert await names_taken(catalog, most=1 << 20) == ["a2", "b1", "a3", "b2"]
    assert await names_taken(catalog) == ["l1", "l2"]


async def test_a_large_file_does_not_wait_for_ever(catalog: Database) -> None:
    number = await add_collection(catalog)
    await add_member(catalog, number, await add_file(catalog, "large", bytes=1 << 20), batch="l")
    order, running = [], None
    for place in range(30):  # the next small one is there before the last is done
        batch = f"b{place}"
        await add_member(catalog, number, await add_file(catalog, batch), batch=batch)
        member = await taken(catalog)
        if running is not None:
            await catalog.write(members.complete, running, "me", 1)
        order.append((running := member).file)
    assert 10 < order.index("large") < 20  # as long as 16 small ones, which are due before it


def first_version(folder: Path) -> None:
    """A catalog as the first schema has it, with one file that waits."""
    with sqlite3.connect(folder / FILE_NAME) as old:
        for statement in MIGRATIONS[0]:
            old.execute(statement)
        old.execute(
            "INSERT INTO files (id, name, purpose, bytes, hash, created) "
            "VALUES ('f', 'f.txt', 'user_data', 1, 'h', 0)"
        )
        old.execute(
            "INSERT INTO members (collection, file, attributes, chunk_tokens, overlap_tokens, "
            "created) VALUES (1, 'f', '{}', 200, 40, 0)"
        )
        old.execute("PRAGMA user_version = 1")
    old.close()


async def test_a_catalog_of_the_first_version_goes_on(tmp_path: Path) -> None:
    first_version(tmp_path)
    catalog = Database(tmp_path)
    await catalog.open()
    await add_member(catalog, 1, await add_file(catalog, "new"))
    assert await names_taken(catalog) == ["f", "new"]
    await catalog.close()


KILLED_WHILE_IT_MIGRATES = """
import asyncio, os, signal, sqlite3, sys
from pathlib import Path
from hookline_knowledge.catalog import Database

folder, last = sys.argv[1:]
connect = sqlite3.connect

def killing(*args, **named):
    connection = connect(*args, **named)
    def kill(statement):
        if last in statement:
            os.kill(os.getpid(), signal.SIGKILL)
    connection.set_trace_callback(kill)
    return connection

sqlite3.connect = killing
asyncio.run(Database(Path(folder)).open())
"""


@pytest.mark.parametrize("last", ["members_in_turn", "PRAGMA user_version = ", "COMMIT"])
async def test_a_killed_migration_leaves_the_old_file(tmp_path: Path, last: str) -> None:
    first_version(tmp_path)
    command = [sys.executable, "-c", KILLED_WHILE_IT_MIGRATES, str(tmp_path), last]
    run = partial(subprocess.run, command, capture_output=True, text=True)
    killed = await asyncio.to_thread(run)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    with sqlite3.connect(tmp_path / FILE_NAME) as still:
        assert still.execute("PRAGMA user_version").fetchone() == (1,)
    still.close()
    catalog = Database(tmp_path)
    await catalog.open()
    assert await names_taken(catalog) == ["f"]
    await catalog.close()
