"""What an answer must match: how plugins say it, and how an engine obeys one after another."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from hookline.engine import Constraint, Grammar, Job

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class ConstraintSpec:
    """What generated text must match.

    ``kind`` says how ``value`` is read: a JSON schema (dict or bool), a regular expression, a
    Lark grammar, or ``tagged`` (text that is free until a tag opens a constrained part).
    ``param`` is the request field to name in errors.

    The value of ``tagged`` is a mapping. ``triggers`` are texts: the first of them in the free text
    opens ``then``, which is what follows it, and after which the text ends. With
    ``"anywhere": False`` (default True) a trigger counts only at the beginning of the text. Text
    without a trigger is free to its end. Without ``triggers`` nothing is free: the text is ``then``
    from its first token. ``otherwise`` takes the place of free text: a mapping of another kind to
    its value, such as ``{"json_schema": …}``, for text that cannot begin with a trigger; triggers
    then count at the very beginning only.

    ``then`` is a tree. A string stands for itself, and where it holds the text of a control token
    for that token; a list for its items, one after the other; ``{"schema": …}`` for JSON;
    ``{"regex": …}`` for text; ``{"until": text}`` for any text up to and with that one;
    ``{"any": [tree, …]}`` for one of them; ``{"optional": tree}`` for it or nothing;
    ``{"repeat": tree}`` for it any number of times.
    """

    kind: Literal["json_schema", "regex", "grammar", "tagged"]
    value: Any
    param: str | None = None
    options: dict[str, Any] = field(default_factory=dict)


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
