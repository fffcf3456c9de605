"""A clock that stands still until a test moves it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta


class TestClock:
    """Tells the server what time it is; see ``clock`` of `hookline.kernel.Kernel`."""

    __test__ = False  # pytest takes every Test… for tests

    def __init__(self, now: datetime = datetime(2030, 1, 15, 12, tzinfo=UTC)) -> None:
        self.now = now

    def __call__(self) -> datetime:
        """The time, with its zone."""
        return self.now

    def advance(self, **length: float) -> None:
        """Goes on by a `timedelta`: ``clock.advance(hours=13)`` is tomorrow."""
        self.now += timedelta(**length)
