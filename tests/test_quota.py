import asyncio
import os
import signal
import subprocess
import sys
import time
from asyncio import CancelledError
from collections.abc import AsyncIterator, Callable, Iterator
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pluggy
import pytest
from pydantic import BaseModel

from hookline.config import Settings
from hookline.errors import (
    ApiError,
    EngineUnavailable,
    InvalidRequest,
    NotFound,
    PluginFailed,
    QueueFull,
    QuotaExhausted,
)
from hookline.exchange import Caller, Exchange
from hookline.hookspecs import Hooks
from hookline.quota import (
    Quota,
    SystemZone,
    duration,
    next_midnight,
    system_clock,
    until_midnight,
)
from hookline.store import Store

BERLIN = ZoneInfo("Europe/Berlin")
NOON = datetime(2026, 5, 5, 12, tzinfo=BERLIN)

ADMIT = """
import asyncio, sys
from datetime import UTC, datetime
from pathlib import Path
from pydantic import BaseModel
from hookline.config import Settings
from hookline.errors import QuotaExhausted
from hookline.exchange import Caller, Exchange
from hookline.quota import Quota
from hookline.store import Store

class Request(BaseModel):
    pass

async def main(folder, limit, tries):
    settings = Settings.model_validate({"quota": {"daily_prompts": int(limit)}})
    async with Store(Path(folder)) as store:
        quota = Quota(settings, store, lambda: datetime(2026, 5, 5, 12, tzinfo=UTC))
        for _ in range(int(tries)):
            try:
                await quota.admit(Exchange("id", 0, "m", Request(), Caller()))
                print("admitted", flush=True)
            except QuotaExhausted:
                print("refused", flush=True)

asyncio.run(main(*sys.argv[1:]))
"""


class Request(BaseModel):
    pass


class FakeClock:
    def __init__(self, now: datetime) -> None:
        self.now = now

    def __call__(self) -> datetime:
        return self.now


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    async with Store(tmp_path) as store:
        yield store


def make_quota(
    store: Store,
    limit: int,
    *,
    per_key: bool = False,
    clock: Callable[[], datetime] = lambda: NOON,
) -> Quota:
    settings = Settings.model_validate({"quota": {"daily_prompts": limit, "per_key": per_key}})
    return Quota(settings, store, clock)


def exchange(caller: str = "anonymous") -> Exchange:
    return Exchange("chatcmpl-1", 0, "model", Request(), Caller(id=caller, name=caller))


async def admitted(quota: Quota, caller: str = "anonymous") -> bool:
    try:
        await quota.admit(exchange(caller))
    except QuotaExhausted:
        return False
    return True


def admitting(folder: Path, limit: int, tries: int) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", ADMIT, str(folder), str(limit), str(tries)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def counts(folder: Path) -> dict[str, int]:
    async def read() -> dict[str, int]:
        async with Store(folder) as store:
            return await store.counts(NOON.date())

    return asyncio.run(read())


class TestAdmit:
    async def test_exactly_the_limit_of_many_at_once(self, store: Store) -> None:
        quota = make_quota(store, 50)
        answers = await asyncio.gather(*(admitted(quota) for _ in range(200)))
        assert answers.count(True) == 50
        assert await store.counts(NOON.date()) == {"*": 50}

    async def test_exactly_the_limit_while_some_are_given_back(self, store: Store) -> None:
        quota = make_quota(store, 50)

        async def one(number: int) -> bool:
            asked = exchange()
            try:
                await quota.admit(asked)
            except QuotaExhausted as error:
                await quota.settle(asked, error)
                return False
            refusal = InvalidRequest("no") if number % 2 else None
            await quota.settle(asked, refusal)
            return refusal is None

        kept = await asyncio.gather(*(one(number) for number in range(300)))
        assert (await store.counts(NOON.date()))["*"] == kept.count(True) <= 50

    async def test_no_limit_counts_nothing(self, store: Store) -> None:
        quota, asked = make_quota(store, 0), exchange()
        await quota.admit(asked)
        assert quota.response_headers(asked) is None
        await quota.settle(asked, None)
        assert await store.counts(NOON.date()) == {}

    async def test_all_keys_share_one_count(self, store: Store) -> None:
        quota = make_quota(store, 2)
        assert [await admitted(quota, caller) for caller in "abc"] == [True, True, False]

    async def test_per_key_counts_apart(self, store: Store) -> None:
        quota = make_quota(store, 2, per_key=True)
        assert [await admitted(quota, caller) for caller in "aaabb"] == [
            *(True, True, False),
            *(True, True),
        ]
        assert await store.counts(NOON.date()) == {"a": 2, "b": 2}

    async def test_a_raised_limit_counts_at_once(self, store: Store) -> None:
        for _ in range(3):
            await admitted(make_quota(store, 2))
        assert await admitted(make_quota(store, 3))
        assert not await admitted(make_quota(store, 1))

    async def test_refusal_says_when_it_starts_again(self, store: Store) -> None:
        quota = make_quota(store, 1)
        await quota.admit(exchange())
        with pytest.raises(QuotaExhausted) as caught:
            await quota.admit(exchange())
        error = caught.value
        assert (error.status, error.type, error.code) == (
            402,
            "insufficient_quota",
            "trial_exhausted",
        )
        assert "2026-05-06 00:00 CEST, in 12h0m0s" in error.message
        assert error.headers == {
            "x-ratelimit-limit-requests": "1",
            "x-ratelimit-remaining-requests": "0",
            "x-ratelimit-reset-requests": "12h0m0s",
        }

    async def test_headers_show_what_was_left(self, store: Store) -> None:
        quota = make_quota(store, 3)
        asked = [exchange() for _ in range(3)]
        for one in asked:
            await quota.admit(one)
        headers = [quota.response_headers(one) or {} for one in asked]
        assert [h["x-ratelimit-remaining-requests"] for h in headers] == ["2", "1", "0"]
        assert {h["x-ratelimit-limit-requests"] for h in headers} == {"3"}
        assert {h["x-ratelimit-reset-requests"] for h in headers} == {"12h0m0s"}

    async def test_no_headers_for_what_was_never_admitted(self, store: Store) -> None:
        assert make_quota(store, 3).response_headers(exchange()) is None

    async def test_registers_like_any_plugin(self, store: Store) -> None:
        manager = pluggy.PluginManager("hookline")
        manager.add_hookspecs(Hooks)
        manager.register(make_quota(store, 1))
        manager.check_pending()
        await manager.hook.admit(exchange=exchange())[0]
        assert await store.counts(NOON.date()) == {"*": 1}


class TestSettle:
    @pytest.mark.parametrize("error", [InvalidRequest("x"), NotFound("x"), QueueFull("x")])
    async def test_refusals_do_not_count(self, store: Store, error: ApiError) -> None:
        quota, asked = make_quota(store, 5), exchange()
        await quota.admit(asked)
        await quota.settle(asked, error)
        assert await store.counts(NOON.date()) == {"*": 0}

    @pytest.mark.parametrize(
        "error",
        [
            None,
            PluginFailed("x"),
            EngineUnavailable("x"),
            CancelledError(),
            RuntimeError("x"),
            ValueError("x"),
        ],
    )
    async def test_everything_else_counts(self, store: Store, error: BaseException | None) -> None:
        quota, asked = make_quota(store, 5), exchange()
        await quota.admit(asked)
        await quota.settle(asked, error)
        assert await store.counts(NOON.date()) == {"*": 1}

    async def test_gives_back_once(self, store: Store) -> None:
        quota, asked = make_quota(store, 5), exchange()
        await quota.admit(exchange())
        await quota.admit(asked)
        for _ in range(3):
            await quota.settle(asked, InvalidRequest("x"))
        assert await store.counts(NOON.date()) == {"*": 1}

    async def test_own_refusal_gives_nothing_back(self, store: Store) -> None:
        quota, asked = make_quota(store, 1), exchange()
        await quota.admit(exchange())
        with pytest.raises(QuotaExhausted) as caught:
            await quota.admit(asked)
        await quota.settle(asked, caught.value)
        assert await store.counts(NOON.date()) == {"*": 1}

    async def test_gives_back_to_its_own_day_and_key(self, store: Store) -> None:
        clock = FakeClock(NOON)
        quota, asked = make_quota(store, 1, per_key=True, clock=clock), exchange("a")
        await quota.admit(asked)
        clock.now += timedelta(days=1)
        await quota.admit(exchange("a"))
        await quota.admit(exchange("b"))
        await quota.settle(asked, InvalidRequest("x"))
        assert await store.counts(NOON.date()) == {"a": 0}
        assert await store.counts(clock.now.date()) == {"a": 1, "b": 1}


class TestDays:
    async def test_starts_again_at_local_midnight(self, store: Store) -> None:
        clock = FakeClock(datetime(2026, 5, 5, 23, 59, 59, tzinfo=BERLIN))
        quota = make_quota(store, 1, clock=clock)
        assert [await admitted(quota), await admitted(quota)] == [True, False]
        clock.now += timedelta(seconds=1)
        assert [await admitted(quota), await admitted(quota)] == [True, False]

    @pytest.mark.parametrize(
        ("day", "hours"),
        [(date(2026, 3, 29), 23), (date(2026, 10, 25), 25), (date(2026, 5, 5), 24)],
    )
    async def test_a_day_lasts_as_long_as_the_clocks_say(
        self, store: Store, day: date, hours: int
    ) -> None:
        start = datetime(day.year, day.month, day.day, tzinfo=BERLIN).astimezone(UTC)
        clock = FakeClock(start.astimezone(BERLIN))
        quota, asked = make_quota(store, 2, clock=clock), exchange()
        await quota.admit(asked)
        reset = (quota.response_headers(asked) or {})["x-ratelimit-reset-requests"]
        assert reset == f"{hours}h0m0s"
        last = start + timedelta(hours=hours, seconds=-1)
        clock.now = last.astimezone(BERLIN)
        assert [await admitted(quota), await admitted(quota)] == [True, False]
        clock.now = (last + timedelta(seconds=1)).astimezone(BERLIN)
        assert await admitted(quota)

    async def test_old_days_are_forgotten(self, store: Store) -> None:
        clock = FakeClock(NOON)
        quota = make_quota(store, 5, clock=clock)
        for _ in range(4):
            await quota.admit(exchange())
            clock.now += timedelta(days=1)
        left = [await store.counts(NOON.date() + timedelta(days=days)) for days in range(4)]
        assert left == [{}, {}, {"*": 1}, {"*": 1}]


class TestMidnight:
    def test_skipped_midnight_is_the_moment_after_the_jump(self) -> None:
        # In Santiago the clocks jump from 00:00 to 01:00.
        now = datetime(2025, 9, 6, 23, 30, tzinfo=ZoneInfo("America/Santiago"))
        assert until_midnight(now) == timedelta(minutes=30)
        assert f"{next_midnight(now):%d %H:%M}" == "07 01:00"

    def test_second_last_hour_of_a_day(self) -> None:
        # In Santiago the clocks go back from 24:00 to 23:00.
        now = datetime(2026, 4, 4, 23, 30, tzinfo=ZoneInfo("America/Santiago"))
        assert until_midnight(now) == timedelta(minutes=90)
        assert until_midnight(now.replace(fold=1)) == timedelta(minutes=30)

    def test_repeated_midnight_is_the_first(self) -> None:
        # In Havana the clocks go back from 01:00 to 00:00.
        now = datetime(2026, 10, 31, 23, 0, tzinfo=ZoneInfo("America/Havana"))
        assert until_midnight(now) == timedelta(hours=1)

    @pytest.mark.parametrize(
        ("length", "text"),
        [
            (timedelta(hours=6, minutes=3), "6h3m0s"),
            (timedelta(hours=25), "25h0m0s"),
            (timedelta(minutes=3), "3m0s"),
            (timedelta(seconds=59), "59s"),
            (timedelta(milliseconds=1), "1s"),
            (timedelta(seconds=59, milliseconds=1), "1m0s"),
            (timedelta(0), "0s"),
        ],
    )
    def test_duration(self, length: timedelta, text: str) -> None:
        assert duration(length) == text


class TestSystemZone:
    @pytest.fixture(autouse=True)
    def in_central_europe(self, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
        with monkeypatch.context() as patch:
            patch.setenv("TZ", "CET-1CEST,M3.5.0,M10.5.0/3")
            time.tzset()
            yield
        time.tzset()

    @pytest.mark.parametrize(
        ("now", "left"),
        [
            (datetime(2026, 3, 29, 0, 30), timedelta(hours=22, minutes=30)),
            (datetime(2026, 10, 25, 2, 30), timedelta(hours=22, minutes=30)),
            (datetime(2026, 10, 25, 2, 30, fold=1), timedelta(hours=21, minutes=30)),
            (datetime(2026, 5, 5, 23), timedelta(hours=1)),
        ],
    )
    def test_knows_the_rules(self, now: datetime, left: timedelta) -> None:
        assert until_midnight(now.replace(tzinfo=SystemZone())) == left

    def test_agrees_with_the_zone_it_is_set_to(self) -> None:
        moment = datetime(2026, 10, 24, 22, tzinfo=UTC)
        for _ in range(10):
            system, berlin = moment.astimezone(SystemZone()), moment.astimezone(BERLIN)
            assert system.isoformat() == berlin.isoformat()
            assert system.astimezone(UTC) == moment
            assert system.tzname() == berlin.tzname()
            moment += timedelta(minutes=30)

    def test_clock_tells_the_time(self) -> None:
        before, now, after = datetime.now(UTC), system_clock(), datetime.now(UTC)
        assert before <= now <= after
        assert now.utcoffset() in (timedelta(hours=1), timedelta(hours=2))


class TestProcesses:
    def test_two_at_once_admit_exactly_the_limit(self, tmp_path: Path) -> None:
        running = [admitting(tmp_path, limit=60, tries=50) for _ in range(2)]
        said = "".join(process.communicate()[0] for process in running)
        assert said.count("admitted") == 60
        assert said.count("refused") == 40
        assert counts(tmp_path) == {"*": 60}

    def test_kill_loses_no_admission(self, tmp_path: Path) -> None:
        process = admitting(tmp_path, limit=1_000_000, tries=1_000_000)
        assert process.stdout is not None
        for _ in range(100):
            assert process.stdout.readline() == "admitted\n"
        os.kill(process.pid, signal.SIGKILL)
        reported = 100 + process.communicate()[0].count("admitted\n")
        assert process.returncode == -signal.SIGKILL
        # The one it was taking when it died may have been counted, too.
        assert reported <= counts(tmp_path)["*"] <= reported + 1
