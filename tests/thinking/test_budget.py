"""The constraint of a thought, on a vocabulary made by hand."""

from __future__ import annotations

from typing import Any

import pytest

from hookline import Vocabulary
from hookline_thinking.budget import EndTag, Thought

WORDS = (b"<eos>", b"hm", b"</", b"think", b">", b">\n", b">{", b"</think>", b"a</think>b", b"x")
EOS, HM, OPEN, THINK, CLOSE, CLOSE_LINE, CLOSE_BRACE, TAG, MIDDLE, X = range(len(WORDS))


class Model:
    """What the tag asks of an engine."""

    def vocabulary(self) -> Vocabulary:
        return Vocabulary((*WORDS, b""), frozenset({EOS}), frozenset({EOS}))

    def detokenize(self, ids: list[int]) -> str:
        assert ids == [len(WORDS)]
        return "</think>"


@pytest.fixture(scope="module")
def end() -> EndTag:
    model: Any = Model()
    return EndTag("</think>", model)


def allowed(constraint: Any) -> set[int]:
    return {token for token, may in enumerate(constraint.mask()) if may}


EVERYTHING = set(range(len(WORDS) + 1))


def test_a_thought_is_free_but_for_its_end(end: EndTag) -> None:
    thought = Thought(end, 10, [TAG]).start()
    assert allowed(thought) == EVERYTHING - {EOS, MIDDLE}
    thought.accept(HM)
    assert allowed(thought) == EVERYTHING - {EOS, MIDDLE}


def test_no_token_closes_the_tag_and_goes_on(end: EndTag) -> None:
    thought = Thought(end, 10, [TAG]).start()
    thought.accept(OPEN)
    thought.accept(THINK)
    assert allowed(thought) == EVERYTHING - {EOS, MIDDLE, CLOSE_BRACE}
    thought.accept(CLOSE_LINE)
    assert thought.is_done


@pytest.mark.parametrize(
    "tokens", [[TAG], [OPEN, THINK, CLOSE], [HM, len(WORDS)], [X, OPEN, THINK, CLOSE]]
)
def test_the_tag_ends_it(end: EndTag, tokens: list[int]) -> None:
    thought = Thought(end, 10, [TAG]).start()
    for token in tokens:
        assert not thought.is_done
        thought.accept(token)
    assert thought.is_done


def test_a_spent_budget_leaves_one_way_out(end: EndTag) -> None:
    thought = Thought(end, 2, [X, TAG]).start()
    thought.accept(HM)
    thought.accept(HM)
    for forced in (X, TAG):
        assert not thought.is_done
        assert allowed(thought) == {forced}
        thought.accept(forced)
    assert thought.is_done


def test_a_thought_that_closes_with_its_last_token_is_not_closed_again(end: EndTag) -> None:
    thought = Thought(end, 1, [X, TAG]).start()
    thought.accept(TAG)
    assert thought.is_done


def test_answers_share_nothing(end: EndTag) -> None:
    thought = Thought(end, 1, [TAG])
    first, second = thought.start(), thought.start()
    first.accept(HM)
    assert allowed(first) == {TAG}
    assert len(allowed(second)) > 1
    first.accept(TAG)
    assert thought.start().mask().sum() == len(allowed(second))
