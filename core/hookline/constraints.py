"""What an engine obeys while it answers: one constraint after another."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hookline.engine import Constraint, Grammar, Job

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Mask = npt.NDArray[np.bool_]


def constraint_of(job: Job) -> Constraint | None:
    """The constraint that an engine obeys while it answers a job; None when everything may come.

    Called in the engine's worker thread, once a job.
    """
    if job.opening is not None:
        return _Sequel(job.opening.start(), job.grammar)
    return None if job.grammar is None else job.grammar.start()


def forced_token(constraint: Constraint | None) -> int | None:
    """The one token that can come next, where the constraint can tell."""
    if constraint is None:
        return None
    forced: int | None = getattr(constraint, "forced", None)  # asking for a protocol costs more
    return forced


class _Sequel:
    """An opening, and then what the rest must match, if anything."""

    def __init__(self, opening: Constraint, rest: Grammar | None) -> None:
        self._opening: Constraint | None = opening
        self._rest = rest
        self._constraint: Constraint | None = opening

    @property
    def forced(self) -> int | None:
        return forced_token(self._constraint)

    def mask(self) -> Mask | None:
        return None if self._constraint is None else self._constraint.mask()

    def accept(self, token: int) -> None:
        if self._constraint is not None:
            self._constraint.accept(token)
        if self._opening is not None and self._opening.is_done:
            self._opening = None
            self._constraint = None if self._rest is None else self._rest.start()

    @property
    def is_done(self) -> bool:
        return self._opening is None and self._constraint is not None and self._constraint.is_done
