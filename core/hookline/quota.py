"""The allowance: how many generation requests a local calendar day may bring."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from typing import ClassVar

from hookline.config import Settings
from hookline.errors import ApiError, QuotaExhausted
from hookline.exchange import Exchange
from hookline.hookspecs import hookimpl
from hookline.server import Clock
from hookline.store import Store

EVERYBODY = "*"
"""The scope that all callers share unless ``per_key`` is set."""


class SystemZone(tzinfo):
    """The zone the machine is set to, with its rules and not just today's offset.

    ``datetime.astimezone()`` alone pins the offset of the moment, which puts midnight an hour off
    on the days when clocks change.
    """

    def utcoffset(self, moment: datetime | None) -> timedelta | None:
        return moment.replace(tzinfo=None).astimezone().utcoffset() if moment else None

    def dst(self, moment: datetime | None) -> timedelta | None:
        return None

    def tzname(self, moment: datetime | None) -> str | None:
        return moment.replace(tzinfo=None).astimezone().tzname() if moment else None

    def fromutc(self, moment: datetime) -> datetime:
        # Only this call tells the two hours apart that clocks show twice (``fold``).
        return datetime.fromtimestamp(moment.replace(tzinfo=UTC).timestamp()).replace(tzinfo=self)


def system_clock() -> datetime:
    """Now, in the zone the machine is set to."""
    return datetime.now(SystemZone())


def next_midnight(now: datetime) -> datetime:
    """When the local day after ``now`` begins, in the zone of ``now``.

    The way through UTC turns a midnight that the clocks skip into the moment they jump to.
    """
    wall = datetime.combine(now.date() + timedelta(days=1), time.min, now.tzinfo)
    return wall.astimezone(UTC).astimezone(now.tzinfo)


def until_midnight(now: datetime) -> timedelta:
    """How long the local day still lasts, in real time also when clocks change."""
    return next_midnight(now).astimezone(UTC) - now.astimezone(UTC)


def duration(length: timedelta) -> str:
    """A length of time as OpenAI's headers write it: ``6h3m0s``, ``3m0s``, ``59s``; whole seconds,
    rounded up."""
    seconds = -(-length // timedelta(seconds=1))
    minutes, second = divmod(seconds, 60)
    hour, minute = divmod(minutes, 60)
    if hour:
        return f"{hour}h{minute}m{second}s"
    return f"{minute}m{second}s" if minute else f"{second}s"


@dataclass(frozen=True, slots=True)
class Admission:
    """What one admitted request took: which day's and whose count, and what was left then."""

    day: date
    scope: str
    remaining: int
    reset: timedelta


class Quota:
    """The plugin that counts requests and refuses those over ``[quota] daily_prompts``.

    Exact however many requests and processes count at once, since taking one is a single
    statement of the store. A request counts unless it was refused with 4xx or 503.
    """

    essential: ClassVar[bool] = True

    def __init__(self, settings: Settings, store: Store, clock: Clock = system_clock) -> None:
        self._limit = settings.quota.daily_prompts
        self._per_key = settings.quota.per_key
        self._store = store
        self._clock = clock
        self._day: date | None = None

    @hookimpl
    async def admit(self, exchange: Exchange) -> None:
        """Takes one. Raises QuotaExhausted (402) when none is left today."""
        if not self._limit:
            return
        now = self._clock()
        await self._forget_old_days(now.date())
        scope = exchange.caller.id if self._per_key else EVERYBODY
        used = await self._store.take(now.date(), scope, self._limit)
        if used is None:
            raise self._refusal(now)
        exchange.state["quota"] = Admission(
            now.date(), scope, self._limit - used, until_midnight(now)
        )

    @hookimpl
    def response_headers(self, exchange: Exchange) -> Mapping[str, str] | None:
        """The allowance as it was after this request was admitted."""
        taken = exchange.state.get("quota")
        return self._headers(taken.remaining, taken.reset) if taken else None

    @hookimpl
    async def settle(self, exchange: Exchange, error: BaseException | None) -> None:
        """Gives back what a refused request took, once."""
        taken = exchange.state.pop("quota", None)
        if taken and isinstance(error, ApiError) and _is_refusal(error.status):
            await self._store.give_back(taken.day, taken.scope)

    async def _forget_old_days(self, today: date) -> None:
        if today == self._day:
            return
        self._day = today
        # Yesterday stays: requests of before midnight may still give back, and clocks are set back.
        await self._store.purge_counts(today - timedelta(days=1))

    def _headers(self, remaining: int, reset: timedelta) -> dict[str, str]:
        return {
            "x-ratelimit-limit-requests": str(self._limit),
            "x-ratelimit-remaining-requests": str(remaining),
            "x-ratelimit-reset-requests": duration(reset),
        }

    def _refusal(self, now: datetime) -> QuotaExhausted:
        reset = until_midnight(now)
        return QuotaExhausted(
            f"Today's allowance of requests ({self._limit}) is used up. It starts again at "
            f"{next_midnight(now):%Y-%m-%d %H:%M %Z}, in {duration(reset)}.",
            headers=self._headers(0, reset),
        )


def _is_refusal(status: int) -> bool:
    return 400 <= status < 500 or status == 503
