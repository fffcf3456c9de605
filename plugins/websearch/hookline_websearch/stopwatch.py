"""How long a search takes, without the time in which the model thinks about it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager


class Stopwatch:
    """Counts seconds up to a limit; stands still while paused."""

    def __init__(self, limit: float) -> None:
        self._limit = limit
        self._begin = time.monotonic()

    @property
    def spent(self) -> float:
        """Seconds so far."""
        return time.monotonic() - self._begin

    @property
    def left(self) -> float:
        """Seconds until the limit, never below 0."""
        return max(self._limit - self.spent, 0.0)

    @contextmanager
    def paused(self) -> Iterator[None]:
        """A stretch that does not count."""
        begin = time.monotonic()
        try:
            yield
        finally:
            self._begin += time.monotonic() - begin
