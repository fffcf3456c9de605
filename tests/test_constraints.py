"""One constraint after another, on a vocabulary of single letters."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from hookline import Constraint, Grammar, Job
from hookline.constraints import constraint_of

LETTERS = "abcdefgh"


class Spelled:
    """A grammar of one text, and its constraint; ``free`` ones allow anything of its length."""

    def __init__(self, text: str, *, free: bool = False) -> None:
        self.text, self.free, self.place = text, free, 0

    def start(self) -> Spelled:
        return Spelled(self.text, free=self.free)

    def mask(self) -> npt.NDArray[np.bool_] | None:
        if self.free:
            return None
        return np.isin(np.arange(len(LETTERS)), LETTERS.index(self.text[self.place]))

    def accept(self, token: int) -> None:
        self.place += 1

    @property
    def is_done(self) -> bool:
        return self.place == len(self.text)


def allowed(constraint: Constraint) -> str:
    mask = constraint.mask()
    if mask is None:
        return LETTERS
    return "".join(letter for letter, may in zip(LETTERS, mask, strict=True) if may)


def spell(constraint: Constraint, text: str) -> list[str]:
    """What was allowed before each letter."""
    seen = []
    for letter in text:
        seen.append(allowed(constraint))
        constraint.accept(LETTERS.index(letter))
    return seen


def constraint(*, opening: Grammar | None = None, grammar: Grammar | None = None) -> Constraint:
    made = constraint_of(Job([1], opening=opening, grammar=grammar))
    assert made is not None
    return made


def test_a_job_without_rules_has_no_constraint() -> None:
    assert constraint_of(Job([1])) is None


def test_every_job_gets_a_fresh_constraint() -> None:
    job = Job([1], grammar=Spelled("ab"))
    first, second = constraint_of(job), constraint_of(job)
    assert first is not None and second is not None
    spell(first, "ab")
    assert (first.is_done, second.is_done) == (True, False)


def test_the_grammar_begins_where_the_opening_is_done() -> None:
    made = constraint(opening=Spelled("xy", free=True), grammar=Spelled("ab"))
    assert spell(made, "hha") == [LETTERS, LETTERS, "a"]
    assert not made.is_done
    assert spell(made, "b") == ["b"]
    assert made.is_done


def test_after_an_opening_alone_everything_may_come_and_nothing_ends_it() -> None:
    made = constraint(opening=Spelled("a"))
    assert spell(made, "ahb") == ["a", LETTERS, LETTERS]
    assert not made.is_done
