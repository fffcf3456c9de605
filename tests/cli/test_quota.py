import asyncio
import json
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from click.testing import CliRunner, Result

from hookline.auth import new_key
from hookline.cli.quota import quota
from hookline.config import Settings
from hookline.quota import EVERYBODY
from hookline.store import Store

NOW = datetime(2026, 5, 5, 18, 30, tzinfo=ZoneInfo("Europe/Berlin"))
MakeSettings = Callable[..., Settings]


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> MakeSettings:
    monkeypatch.setattr("hookline.cli.quota.system_clock", lambda: NOW)

    def make(**table: Any) -> Settings:
        return Settings.model_validate({"data_dir": tmp_path, "quota": table})

    return make


def run(settings: Settings, *args: str) -> Result:
    return CliRunner().invoke(quota, args, obj=settings)


def use(settings: Settings, **uses: int) -> None:
    """Counts requests of callers by name; each name gets a key."""

    async def count() -> None:
        async with Store(settings.data_dir) as store:
            for name, times in uses.items():
                _, key = new_key(name, NOW)
                await store.add_key(key)
                for _ in range(times):
                    await store.take(NOW.date(), key.id, 100)
                    await store.take(NOW.date(), EVERYBODY, 100)

    asyncio.run(count())


def test_shows_the_count_of_all_together(settings: MakeSettings) -> None:
    use(settings(), laptop=2, phone=1)
    result = run(settings(daily_prompts=10))
    assert result.exit_code == 0
    assert result.stdout == "everybody\t3\t7\n"
    assert "10 requests a day for all together" in result.stderr
    assert "5h30m0s" in result.stderr


def test_shows_counts_by_the_names_of_keys(settings: MakeSettings) -> None:
    use(settings(), laptop=2, phone=1)
    result = run(settings(daily_prompts=2, per_key=True))
    assert sorted(result.stdout.splitlines()) == ["laptop\t2\t0", "phone\t1\t1"]


def test_as_json(settings: MakeSettings) -> None:
    use(settings(), laptop=3)
    assert json.loads(run(settings(daily_prompts=2), "--json").stdout) == {
        "day": "2026-05-05",
        "limit": 2,
        "per_key": False,
        "resets_at": "2026-05-06T00:00:00+02:00",
        "resets_in": "5h30m0s",
        "counts": [{"id": "*", "name": "everybody", "used": 3, "remaining": 0}],
    }


def test_says_when_there_is_no_allowance(settings: MakeSettings) -> None:
    result = run(settings())
    assert "daily_prompts is 0" in result.stderr
    assert json.loads(run(settings(), "--json").stdout)["limit"] is None


def test_reset_starts_again(settings: MakeSettings) -> None:
    use(settings(), laptop=2)
    result = run(settings(daily_prompts=2), "reset")
    assert result.exit_code == 0
    assert "2026-05-05 are 0 again" in result.stderr
    assert json.loads(run(settings(daily_prompts=2), "--json").stdout)["counts"] == []


def test_reset_as_json(settings: MakeSettings) -> None:
    answer = json.loads(run(settings(daily_prompts=2), "reset", "--json").stdout)
    assert answer == {"day": "2026-05-05", "counts": []}


def test_json_before_the_subcommand_is_no_silent_mistake(settings: MakeSettings) -> None:
    result = run(settings(daily_prompts=2), "--json", "reset")
    assert result.exit_code == 2
    assert "after the subcommand" in result.stderr
