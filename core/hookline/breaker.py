"""A circuit breaker for each plugin: what fails again and again is left alone for a while.

Closed, half-open and open as in Michael Nygard's *Release It!* (2007). Counted are failures of one
hook in a row: a plugin has hooks that hardly can fail, and their success says nothing about the
others.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

BreakerState = Literal["closed", "open", "half-open"]


@dataclass(slots=True)
class Breaker:
    """Opens after ``limit`` failures of a hook in a row, for ``pause`` seconds.

    After the pause one request is let through as a trial. Where the hook that failed succeeds in
    it, the breaker closes; where it fails, or is not even called, the next pause begins. ``blamed``
    is the hook that opened it. All times are seconds of a monotonic clock.
    """

    limit: int = 5
    pause: float = 30.0
    in_a_row: dict[str, int] = field(default_factory=dict)
    open_until: float | None = None
    trying: bool = False
    blamed: str | None = None

    @property
    def state(self) -> BreakerState:
        """Closed while all is well; half-open while a trial is on its way."""
        if self.open_until is None:
            return "closed"
        return "half-open" if self.trying else "open"

    @property
    def hook(self) -> str | None:
        """The hook whose failures are to blame; None while none fails."""
        if self.open_until is not None and self.blamed is not None:
            return self.blamed
        return max(self.in_a_row, key=lambda hook: self.in_a_row[hook], default=None)

    def admits(self, now: float) -> bool:
        """Whether a request may use the plugin; one that comes after the pause is the trial."""
        if self.open_until is None:
            return True
        if now < self.open_until:
            return False
        self.trying = True
        self.open_until = now + self.pause  # nobody else until it is known how this one ends
        return True

    def remaining(self, now: float) -> float:
        """Seconds until the next trial; 0 while closed."""
        return max(0.0, self.open_until - now) if self.open_until is not None else 0.0

    def failed(self, hook: str, now: float) -> bool:
        """Counts a failure. Returns whether it opened the breaker that was closed."""
        count = self.in_a_row.get(hook, 0) + 1
        was_closed = self.open_until is None
        if count >= self.limit:
            self.open_until, self.trying = now + self.pause, False
            count = self.limit - 1  # the next failure, which is the trial's, opens it again
            self.blamed = hook
        self.in_a_row[hook] = count
        return was_closed and self.open_until is not None

    def reprieve(self) -> None:
        """Closes it after a trial that proved little; the next failure opens it again."""
        self.open_until, self.trying = None, False

    def succeeded(self, hook: str) -> None:
        """Ends a row of failures; the last one that ends closes the breaker."""
        self.in_a_row.pop(hook, None)
        if not self.in_a_row:
            self.open_until, self.trying = None, False
