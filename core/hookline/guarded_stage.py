"""A plugin's stage, watched: when it breaks, the answer goes on without it where that is honest."""

from __future__ import annotations

from collections.abc import Iterable

from hookline.errors import ApiError
from hookline.exchange import Exchange
from hookline.isolation import Call, Isolation
from hookline.stream import Delta, Stage


class GuardedStage:
    """The stage that ``call`` made for one choice of an exchange's answer."""

    def __init__(self, stage: Stage, isolation: Isolation, call: Call, exchange: Exchange) -> None:
        self._stage: Stage | None = stage
        self._isolation = isolation
        self.call = call
        self._exchange = exchange

    def feed(self, delta: Delta) -> Iterable[Delta]:
        """The stage's deltas, or the delta itself once the stage is broken."""
        if self._stage is None:
            return [delta]
        try:
            return _checked(self._stage.feed(delta))
        except (Exception, SystemExit) as error:
            self._break(error)
            return [delta]

    def finish(self) -> Iterable[Delta]:
        """What the stage held back."""
        if self._stage is None:
            return []
        try:
            deltas = _checked(self._stage.finish())
        except (Exception, SystemExit) as error:
            self._break(error)
            return []
        self._isolation.worked(self.call, self._exchange)
        return deltas

    def _break(self, error: BaseException) -> None:
        if isinstance(error, ApiError):
            raise error
        self._stage = None
        self._isolation.failed(self.call, self._exchange, error)


def _checked(deltas: Iterable[Delta] | None) -> list[Delta]:
    if deltas is None:
        raise TypeError("a stage gives Deltas, not None")
    checked = list(deltas)
    for delta in checked:
        if not isinstance(delta, Delta):
            raise TypeError(f"a stage gives Deltas, not {type(delta).__name__}")
    return checked
