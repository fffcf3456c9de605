"""What fails in plugins while a test runs: a server only logs it, a test wants to know."""

from __future__ import annotations

import logging
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Failure:
    """One failure: what the log says, and what was raised."""

    what: str
    error: BaseException


class Failures(logging.Handler):
    """Hears the kernel's log of plugins that failed."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self._heard: list[Failure] = []

    def listen(self) -> None:
        """Begins to hear."""
        logging.getLogger("hookline.plugins").addHandler(self)

    def forget(self) -> None:
        """Hears no more, and forgets what it heard."""
        logging.getLogger("hookline.plugins").removeHandler(self)
        self._heard.clear()

    def emit(self, record: logging.LogRecord) -> None:
        """Takes a record that has an exception."""
        if record.exc_info and record.exc_info[1] is not None:
            self._heard.append(Failure(record.getMessage(), record.exc_info[1]))

    def take(self) -> list[Failure]:
        """What was heard since the last time."""
        heard, self._heard = self._heard, []
        return heard
