import asyncio
import sqlite3
import subprocess
import sys
from collections.abc import AsyncIterator
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import aiosqlite
import pytest

from hookline.errors import StartError
from hookline.store import MIGRATIONS, NameTaken, Store, StoredKey

NOW = datetime(2026, 5, 5, 12, tzinfo=UTC)
DAY = date(2026, 5, 5)

OPEN_AND_TAKE = """
import asyncio, datetime, pathlib, sys
from hookline.store import Store

async def main():
    async with Store(pathlib.Path(sys.argv[1])) as store:
        for _ in range(20):
            await store.take(datetime.date(2026, 5, 5), "*", 1000)

asyncio.run(main())
"""


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    async with Store(tmp_path) as store:
        yield store


def a_key(name: str, id: str = "key-1") -> StoredKey:
    return StoredKey(id=id, hash="ab" * 32, name=name, created=NOW)


async def refused(data_dir: Path) -> str:
    with pytest.raises(StartError) as caught:
        async with Store(data_dir):
            pass
    message = str(caught.value)
    assert "hookline.db" in message
    assert "\n" not in message
    return message


class TestOpening:
    async def test_makes_file_and_folders_for_the_owner_only(self, tmp_path: Path) -> None:
        async with Store(tmp_path / "a" / "b") as store:
            await store.take(DAY, "*", 1)
            files = list(store.path.parent.iterdir())
            assert {file.stat().st_mode & 0o777 for file in files} == {0o600}
            assert len(files) == 3
        folders = [tmp_path / "a", tmp_path / "a" / "b"]
        assert [folder.stat().st_mode & 0o777 for folder in folders] == [0o700, 0o700]

    async def test_is_in_wal_mode_at_the_newest_schema(self, store: Store) -> None:
        with sqlite3.connect(store.path) as other:
            assert other.execute("PRAGMA journal_mode").fetchone() == ("wal",)
            assert other.execute("PRAGMA user_version").fetchone() == (len(MIGRATIONS),)
        other.close()

    async def test_keeps_everything_when_opened_again(self, tmp_path: Path) -> None:
        async with Store(tmp_path) as store:
            await store.add_key(a_key("laptop"))
            await store.take(DAY, "*", 5)
        async with Store(tmp_path) as store:
            assert await store.keys() == [a_key("laptop")]
            assert await store.counts(DAY) == {"*": 1}

    async def test_brings_an_empty_file_up_to_date(self, tmp_path: Path) -> None:
        (tmp_path / "hookline.db").touch()
        async with Store(tmp_path) as store:
            assert await store.keys() == []

    def test_several_processes_may_be_the_first(self, tmp_path: Path) -> None:
        command = [sys.executable, "-c", OPEN_AND_TAKE, str(tmp_path)]
        running = [subprocess.Popen(command) for _ in range(3)]
        assert [process.wait() for process in running] == [0, 0, 0]

        async def counts() -> dict[str, int]:
            async with Store(tmp_path) as store:
                return await store.counts(DAY)

        assert asyncio.run(counts()) == {"*": 60}

    async def test_unopened_store_says_so(self, tmp_path: Path) -> None:
        with pytest.raises(RuntimeError, match="not open"):
            await Store(tmp_path).keys()

    async def test_closed_store_says_so(self, tmp_path: Path) -> None:
        async with Store(tmp_path) as store:
            pass
        with pytest.raises(RuntimeError, match="not open"):
            await store.take(DAY, "*", 1)


class TestUnusableFile:
    async def test_something_else(self, tmp_path: Path) -> None:
        (tmp_path / "hookline.db").write_bytes(b"no database at all" * 100)
        assert "not a database" in await refused(tmp_path)

    async def test_damaged_inside(self, tmp_path: Path) -> None:
        async with Store(tmp_path) as store:
            for number in range(400):
                await store.take(DAY, f"caller-{number}", 1)
        size = store.path.stat().st_size
        with store.path.open("r+b") as file:
            file.seek(size // 2)
            file.write(b"\xa5" * (size // 2))
        assert "it is damaged" in await refused(tmp_path)

    async def test_read_only(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        async with Store(tmp_path):
            pass
        connect = aiosqlite.connect

        def read_only(path: Path, **options: Any) -> aiosqlite.Connection:
            return connect(f"file:{path}?mode=ro", uri=True, **options)

        monkeypatch.setattr(aiosqlite, "connect", read_only)
        assert "readonly" in await refused(tmp_path)

    async def test_folder_in_its_place(self, tmp_path: Path) -> None:
        (tmp_path / "hookline.db").mkdir()
        assert "directory" in await refused(tmp_path)

    async def test_file_in_the_folders_place(self, tmp_path: Path) -> None:
        (tmp_path / "data").touch()
        assert "Not a directory" in await refused(tmp_path / "data")

    async def test_newer_schema(self, tmp_path: Path) -> None:
        with sqlite3.connect(tmp_path / "hookline.db") as other:
            other.execute("PRAGMA user_version = 99")
        other.close()
        assert "newer Hookline" in await refused(tmp_path)
        with sqlite3.connect(tmp_path / "hookline.db") as other:
            assert other.execute("PRAGMA user_version").fetchone() == (99,)
        other.close()

    async def test_half_a_migration_leaves_nothing(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        steps = (*MIGRATIONS, ("CREATE TABLE more (x)", "NO SQL AT ALL"))
        with monkeypatch.context() as patch:
            patch.setattr("hookline.store.MIGRATIONS", steps)
            assert "syntax error" in await refused(tmp_path)
        async with Store(tmp_path):
            pass
        with sqlite3.connect(tmp_path / "hookline.db") as other:
            tables = other.execute("SELECT name FROM sqlite_schema WHERE type = 'table'").fetchall()
        other.close()
        assert {name for (name,) in tables} == {"keys", "counts"}


class TestKeys:
    async def test_find_by_id(self, store: Store) -> None:
        await store.add_key(a_key("laptop"))
        assert await store.find_key("key-1") == a_key("laptop")
        assert await store.find_key("key-2") is None

    async def test_a_name_is_free_again_after_revoking(self, store: Store) -> None:
        await store.add_key(a_key("laptop"))
        with pytest.raises(NameTaken, match="laptop"):
            await store.add_key(a_key("laptop", "key-2"))
        await store.revoke_key("laptop", NOW)
        await store.add_key(a_key("laptop", "key-2"))
        assert [(key.id, key.revoked) for key in await store.keys()] == [
            ("key-1", NOW),
            ("key-2", None),
        ]

    async def test_revoked_key_is_not_found(self, store: Store) -> None:
        await store.add_key(a_key("laptop"))
        revoked = await store.revoke_key("laptop", NOW)
        assert revoked is not None
        assert revoked.revoked == NOW
        assert await store.find_key("key-1") is None
        assert await store.revoke_key("laptop", NOW) is None

    async def test_last_use(self, store: Store) -> None:
        await store.add_key(a_key("laptop"))
        later = NOW + timedelta(hours=1)
        await store.touch_key("key-1", later)
        found = await store.find_key("key-1")
        assert found is not None
        assert found.last_used == later

    async def test_key_changes_wait_for_the_disk_and_counts_do_not(self, store: Store) -> None:
        seen: list[str] = []
        opened = store._opened
        assert opened is not None
        await opened.set_trace_callback(seen.append)
        await store.take(DAY, "*", 9)
        assert not any("synchronous" in statement for statement in seen)
        await asyncio.gather(store.add_key(a_key("a")), store.revoke_key("b", NOW))
        modes = [s.split()[-1] if "PRAGMA" in s else s.split()[0] for s in seen[1:]]
        assert modes == ["FULL", "INSERT", "NORMAL", "FULL", "UPDATE", "NORMAL"]

    def test_hash_is_no_part_of_its_repr(self) -> None:
        assert "abab" not in repr(a_key("laptop"))


class TestCounts:
    async def test_take_up_to_the_limit(self, store: Store) -> None:
        assert [await store.take(DAY, "*", 2) for _ in range(4)] == [1, 2, None, None]
        assert await store.counts(DAY) == {"*": 2}

    async def test_days_and_scopes_are_apart(self, store: Store) -> None:
        await store.take(DAY, "a", 1)
        assert await store.take(DAY, "b", 1) == 1
        assert await store.take(DAY + timedelta(days=1), "a", 1) == 1
        assert await store.counts(DAY) == {"a": 1, "b": 1}

    async def test_give_back_never_goes_below_nothing(self, store: Store) -> None:
        await store.take(DAY, "*", 1)
        await store.give_back(DAY, "*")
        await store.give_back(DAY, "*")
        await store.give_back(DAY, "nobody")
        assert await store.counts(DAY) == {"*": 0}

    async def test_reset_and_purge(self, store: Store) -> None:
        for days in range(4):
            await store.take(DAY + timedelta(days=days), "*", 1)
        await store.reset_counts(DAY + timedelta(days=3))
        await store.purge_counts(DAY + timedelta(days=2))
        left = [await store.counts(DAY + timedelta(days=days)) for days in range(4)]
        assert left == [{}, {}, {"*": 1}, {}]
