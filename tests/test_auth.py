import hmac
import logging
import sqlite3
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pluggy
import pytest

from hookline.auth import (
    Auth,
    bearer_key,
    hash_key,
    is_loopback,
    key_id,
    key_required,
    network_rule,
    new_key,
)
from hookline.config import Settings
from hookline.errors import ConfigError, InvalidApiKey
from hookline.exchange import Caller
from hookline.hookspecs import Hooks
from hookline.store import Store

LOCKED = Settings.model_validate({"auth": {"require_api_key": True}})
OPEN = Settings()
ANYWHERE = "0.0.0.0"  # noqa: S104


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    async with Store(tmp_path) as store:
        yield store


async def make_key(store: Store, name: str = "laptop") -> str:
    key, stored = new_key(name, datetime.now(UTC))
    await store.add_key(stored)
    return key


def bearer(key: str) -> dict[str, str]:
    return {"authorization": f"Bearer {key}"}


def listening(host: str, **auth: bool) -> Settings:
    return Settings.model_validate({"server": {"host": host}, "auth": auth})


class TestKeyRequired:
    @pytest.mark.parametrize("scheme", ["Bearer", "bearer", "BEARER", "Bearer "])
    async def test_valid_key_in_any_case_of_the_scheme(self, store: Store, scheme: str) -> None:
        key = await make_key(store)
        caller = await Auth(LOCKED, store).authenticate({"authorization": f"{scheme} {key}"})
        assert caller == Caller(id=key_id(hash_key(key)), name="laptop")

    async def test_several_keys_are_told_apart(self, store: Store) -> None:
        keys = [await make_key(store, name) for name in ("a", "b")]
        auth = Auth(LOCKED, store)
        assert [(await auth.authenticate(bearer(key))).name for key in keys] == ["a", "b"]

    @pytest.mark.parametrize(
        ("headers", "says"),
        [
            ({}, "required"),
            ({"authorization": ""}, "required"),
            ({"authorization": "Bearer"}, "must read 'Bearer <key>'"),
            ({"authorization": "Basic dXNlcjpwYXNz"}, "must read 'Bearer <key>'"),
            ({"authorization": "Bearer one two"}, "must read 'Bearer <key>'"),
            ({"authorization": "hl-key"}, "must read 'Bearer <key>'"),
            ({"authorization": "Bearer hl-wrong"}, "wrong or was revoked"),
            ({"authorization": "Bearer h\xe9-\udcff"}, "wrong or was revoked"),
            ({"x-api-key": "hl-wrong"}, "required"),
        ],
    )
    async def test_everything_else_is_refused(
        self, store: Store, headers: dict[str, str], says: str
    ) -> None:
        await make_key(store)
        with pytest.raises(InvalidApiKey, match=says) as caught:
            await Auth(LOCKED, store).authenticate(headers)
        assert caught.value.headers == {"WWW-Authenticate": "Bearer"}
        assert "hl-wrong" not in caught.value.message

    async def test_revoking_elsewhere_counts_at_once(self, store: Store, tmp_path: Path) -> None:
        key = await make_key(store)
        auth = Auth(LOCKED, store)
        await auth.authenticate(bearer(key))
        async with Store(tmp_path) as other:
            await other.revoke_key("laptop", datetime.now(UTC))
        with pytest.raises(InvalidApiKey):
            await auth.authenticate(bearer(key))

    async def test_making_a_key_elsewhere_counts_at_once(
        self, store: Store, tmp_path: Path
    ) -> None:
        auth = Auth(LOCKED, store)
        async with Store(tmp_path) as other:
            key = await make_key(other)
        assert (await auth.authenticate(bearer(key))).name == "laptop"

    async def test_same_id_is_not_enough(self, store: Store) -> None:
        key, stored = new_key("laptop", datetime.now(UTC))
        with sqlite3.connect(store.path) as other:
            other.execute(
                "INSERT INTO keys (id, hash, name, created) VALUES (?, ?, ?, ?)",
                (stored.id, stored.hash[:12] + "0" * 52, "fake", stored.created.isoformat()),
            )
        other.close()
        with pytest.raises(InvalidApiKey):
            await Auth(LOCKED, store).authenticate(bearer(key))

    async def test_compares_in_constant_time(
        self, store: Store, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        key = await make_key(store)
        compared: list[tuple[str, str]] = []
        compare = hmac.compare_digest

        def spy(known: str, asked: str) -> bool:
            compared.append((known, asked))
            return compare(known, asked)

        monkeypatch.setattr(hmac, "compare_digest", spy)
        await Auth(LOCKED, store).authenticate(bearer(key))
        assert compared == [(hash_key(key), hash_key(key))]


class TestNoKeyRequired:
    @pytest.mark.parametrize("headers", [{}, bearer("anything"), {"authorization": "Basic x"}])
    async def test_anybody_is_answered(self, store: Store, headers: dict[str, str]) -> None:
        assert await Auth(OPEN, store).authenticate(headers) == Caller()

    async def test_valid_key_says_who_it_is(self, store: Store) -> None:
        key = await make_key(store)
        assert (await Auth(OPEN, store).authenticate(bearer(key))).name == "laptop"

    async def test_revoked_key_is_anybody(self, store: Store) -> None:
        key = await make_key(store)
        await store.revoke_key("laptop", datetime.now(UTC))
        assert await Auth(OPEN, store).authenticate(bearer(key)) == Caller()


class TestSecrecy:
    def test_keys_are_long_and_different(self) -> None:
        made = {new_key("x", datetime.now(UTC))[0] for _ in range(50)}
        assert len(made) == 50
        # 43 characters of base64 carry 256 bits.
        assert all(key.startswith("hl-") and len(key) == 46 for key in made)

    async def test_no_key_in_the_files(self, store: Store) -> None:
        key = await make_key(store)
        await Auth(LOCKED, store).authenticate(bearer(key))
        kept = b"".join(file.read_bytes() for file in store.path.parent.iterdir())
        assert hash_key(key).encode() in kept
        assert key.removeprefix("hl-").encode()[:8] not in kept

    async def test_no_key_in_the_logs(
        self, store: Store, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        # aiosqlite logs its calls with their values when asked to debug: hashes, never keys.
        caplog.set_level(logging.DEBUG)
        key = await make_key(store)
        auth = Auth(LOCKED, store)
        await auth.authenticate(bearer(key))
        with pytest.raises(InvalidApiKey):
            await auth.authenticate(bearer("hl-mistyped"))
        assert caplog.records
        assert key not in caplog.text
        assert "hl-mistyped" not in caplog.text


class TestLastUse:
    async def test_is_noted_at_most_once_a_minute(
        self, store: Store, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        key = await make_key(store)
        auth = Auth(LOCKED, store)
        for _ in range(3):
            await auth.authenticate(bearer(key))
        (known,) = await store.keys()
        assert known.last_used is not None
        before = known.last_used - timedelta(minutes=2)
        await store.touch_key(known.id, before)
        await auth.authenticate(bearer(key))
        (known,) = await store.keys()
        assert known.last_used is not None
        assert known.last_used > before

    async def test_writes_nothing_in_between(
        self, store: Store, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        key = await make_key(store)
        auth = Auth(LOCKED, store)
        await auth.authenticate(bearer(key))
        monkeypatch.setattr(store, "touch_key", None)
        assert (await auth.authenticate(bearer(key))).name == "laptop"

    async def test_full_disk_locks_nobody_out(
        self, store: Store, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        async def full(*_: Any) -> None:
            raise sqlite3.OperationalError("database or disk is full")

        key = await make_key(store)
        monkeypatch.setattr(store, "touch_key", full)
        assert (await Auth(LOCKED, store).authenticate(bearer(key))).name == "laptop"
        assert "disk is full" in caplog.text


class TestStart:
    async def warnings(self, auth: Auth, caplog: pytest.LogCaptureFixture) -> list[str]:
        async with auth.lifespan():
            pass
        return [record.message for record in caplog.records if record.levelname == "WARNING"]

    async def test_warns_when_no_key_exists(
        self, store: Store, caplog: pytest.LogCaptureFixture
    ) -> None:
        (line,) = await self.warnings(Auth(LOCKED, store), caplog)
        assert "hookline keys new" in line

    async def test_warns_when_all_are_revoked(
        self, store: Store, caplog: pytest.LogCaptureFixture
    ) -> None:
        await make_key(store)
        await store.revoke_key("laptop", datetime.now(UTC))
        assert len(await self.warnings(Auth(LOCKED, store), caplog)) == 1

    async def test_is_quiet_otherwise(self, store: Store, caplog: pytest.LogCaptureFixture) -> None:
        assert await self.warnings(Auth(OPEN, store), caplog) == []
        await make_key(store)
        assert await self.warnings(Auth(LOCKED, store), caplog) == []

    async def test_registers_like_any_plugin(self, store: Store) -> None:
        manager = pluggy.PluginManager("hookline")
        manager.add_hookspecs(Hooks)
        manager.register(Auth(OPEN, store))
        manager.check_pending()
        assert await manager.hook.authenticate(headers={}, address="::1") == Caller()


class TestBearer:
    @pytest.mark.parametrize(
        ("header", "key"),
        [
            ("Bearer k", "k"),
            ("  bearer    k ", "k"),
            ("Bearer k, Bearer l", None),
            ("Bearer", None),
            ("Bearerk", None),
            ("", None),
        ],
    )
    def test_reads(self, header: str, key: str | None) -> None:
        assert bearer_key(header) == key


class TestNetworkRule:
    @pytest.mark.parametrize(
        "host",
        [
            "127.0.0.1",
            "127.8.8.8",
            "localhost",
            "LOCALHOST",
            "localhost.",
            "hookline.localhost",
            "::1",
            "[::1]",
            "::1%lo",
            "::ffff:127.0.0.1",
        ],
    )
    def test_loopback(self, host: str) -> None:
        assert is_loopback(host)
        network_rule(listening(host))
        assert not key_required(listening(host))

    @pytest.mark.parametrize(
        "host",
        [
            ANYWHERE,
            "::",
            "[::]",
            "",
            "192.168.1.5",
            "10.0.0.1",
            "fe80::1",
            "::ffff:10.0.0.1",
            "example.org",
            "localhost.example.org",
            "notlocalhost",
            "127.1",
            "127.0.0.1.example.org",
        ],
    )
    def test_network(self, host: str) -> None:
        assert not is_loopback(host)
        with pytest.raises(ConfigError) as caught:
            network_rule(listening(host))
        line = str(caught.value)
        assert "\n" not in line
        for way_out in ("require_api_key = true", "allow_no_key_on_network = true", "127.0.0.1"):
            assert way_out in line
        assert key_required(listening(host))

    def test_network_with_keys(self) -> None:
        settings = listening(ANYWHERE, require_api_key=True, allow_no_key_on_network=True)
        network_rule(settings)
        assert key_required(settings)

    def test_network_without_keys_when_written_down(self) -> None:
        settings = listening(ANYWHERE, allow_no_key_on_network=True)
        network_rule(settings)
        assert not key_required(settings)
