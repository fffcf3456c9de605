import asyncio
import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from hookline.auth import Auth
from hookline.cli.keys import keys
from hookline.config import Settings
from hookline.errors import InvalidApiKey, StartError
from hookline.store import NameTaken, Store


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings.model_validate({"data_dir": tmp_path, "auth": {"require_api_key": True}})


def run(settings: Settings, *args: str) -> Result:
    return CliRunner().invoke(keys, args, obj=settings)


async def caller_name(settings: Settings, key: str) -> str:
    async with Store(settings.data_dir) as store:
        headers = {"authorization": f"Bearer {key}"}
        return (await Auth(settings, store).authenticate(headers)).name


def test_new_prints_a_working_key_alone_on_stdout(settings: Settings) -> None:
    result = run(settings, "new", "laptop")
    assert result.exit_code == 0
    key = result.stdout.strip()
    assert asyncio.run(caller_name(settings, key)) == "laptop"
    assert "cannot be shown again" in result.stderr
    assert key not in result.stderr


def test_new_as_json(settings: Settings) -> None:
    made = json.loads(run(settings, "new", "laptop", "--json").stdout)
    assert asyncio.run(caller_name(settings, made["key"])) == "laptop"
    assert set(made) == {"key", "id", "name", "created", "last_used", "revoked"}
    assert made["last_used"] is None


def test_new_refuses_a_taken_name(settings: Settings) -> None:
    run(settings, "new", "laptop")
    result = run(settings, "new", "laptop")
    assert result.exit_code == 1
    assert isinstance(result.exception, NameTaken)


@pytest.mark.parametrize("name", ["", " laptop", "two\nlines", "\x1b[31mred", "x" * 65])
def test_new_refuses_names_that_mislead(settings: Settings, name: str) -> None:
    result = run(settings, "new", name)
    assert result.exit_code == 2
    assert "visible characters" in result.stderr


def test_list_shows_every_key_and_its_state(settings: Settings) -> None:
    for name in ("laptop", "[red]phone"):
        run(settings, "new", name)
    run(settings, "revoke", "laptop")
    first, second = run(settings, "list").stdout.splitlines()
    assert "laptop" in first
    assert "revoked" in first
    assert "[red]phone" in second
    assert "active" in second


def test_list_as_json_holds_no_secret(settings: Settings) -> None:
    key = run(settings, "new", "laptop").stdout.strip()
    asyncio.run(caller_name(settings, key))
    text = run(settings, "list", "--json").stdout
    (listed,) = json.loads(text)
    assert listed["name"] == "laptop"
    assert datetime.fromisoformat(listed["last_used"]) <= datetime.now(UTC)
    assert key not in text
    assert "hash" not in listed


def test_list_without_keys_says_how_to_make_one(settings: Settings) -> None:
    result = run(settings, "list")
    assert result.stdout == ""
    assert "hookline keys new" in result.stderr
    assert json.loads(run(settings, "list", "--json").stdout) == []


def test_revoke_ends_a_key(settings: Settings) -> None:
    key = run(settings, "new", "laptop").stdout.strip()
    result = run(settings, "revoke", "laptop")
    assert result.exit_code == 0
    assert "laptop" in result.stderr
    with pytest.raises(InvalidApiKey):
        asyncio.run(caller_name(settings, key))


def test_revoke_as_json(settings: Settings) -> None:
    run(settings, "new", "laptop")
    assert json.loads(run(settings, "revoke", "laptop", "--json").stdout)["revoked"]


def test_revoke_of_nothing_is_an_error(settings: Settings) -> None:
    result = run(settings, "revoke", "laptop")
    assert result.exit_code == 1
    assert "no active key named 'laptop'" in result.stderr


def test_unusable_file_is_a_foreseen_error(settings: Settings) -> None:
    (settings.data_dir / "hookline.db").write_bytes(b"junk" * 1000)
    result = run(settings, "list")
    assert isinstance(result.exception, StartError)
