"""One grammar or the other: which it is, the first tokens of an answer decide."""

from __future__ import annotations

from typing import Protocol

import numpy as np
import numpy.typing as npt

from hookline import Constraint, Grammar

Mask = npt.NDArray[np.bool_]


class Alternative(Constraint, Protocol):
    """A constraint of this plugin."""

    def mask(self) -> Mask:
        """True for each token that may come next."""
        ...

    @property
    def forced(self) -> int | None:
        """The one token that can come, where that is cheap to know."""
        ...

    def try_accept(self, token: int) -> bool:
        """Takes a token if it can come; whether it can."""
        ...


class AlternativeGrammar(Grammar, Protocol):
    """A grammar of this plugin."""

    end: frozenset[int]

    def start(self) -> Alternative:
        """A fresh constraint for one answer."""
        ...


class EitherGrammar:
    """Answers that match one of several grammars.

    They stay apart instead of becoming one: the compiler's lexer could not go back from what begins
    like a part of the one to what is part of the other.
    """

    def __init__(self, *grammars: AlternativeGrammar) -> None:
        self._grammars = grammars
        self.end = grammars[0].end

    def start(self) -> Either:
        """A fresh constraint for one answer."""
        return Either([grammar.start() for grammar in self._grammars], self.end)


class Either:
    """The alternatives that the answer so far has left."""

    def __init__(self, left: list[Alternative], end: frozenset[int]) -> None:
        self._left = left
        self._end = list(end)

    @property
    def forced(self) -> int | None:
        return self._left[0].forced if len(self._left) == 1 else None

    @property
    def is_done(self) -> bool:
        return all(one.is_done for one in self._left)

    def mask(self) -> Mask:
        """True for each token that one of them allows next."""
        if len(self._left) == 1:
            return self._left[0].mask()
        whole: Mask = np.logical_or.reduce([one.mask() for one in self._left if not one.is_done])
        if any(one.is_done for one in self._left):
            whole[self._end] = True
        return whole

    def accept(self, token: int) -> None:
        """Takes the token that was sampled, and leaves those that it can belong to."""
        if len(self._left) == 1:
            self._left[0].accept(token)
        else:
            self.try_accept(token)

    def try_accept(self, token: int) -> bool:
        """Takes a token if one of them can take it; whether one can."""
        self._left = [one for one in self._left if one.try_accept(token)]
        return bool(self._left)
