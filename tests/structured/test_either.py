"""Answers that match one grammar or the other."""

from __future__ import annotations

import llguidance
import pytest

from hookline import Vocabulary
from hookline_structured.either import EitherGrammar
from hookline_structured.grammar import LLGrammar
from hookline_structured.tokens import Tokens

END = 256
VOCABULARY = Vocabulary(
    (*(bytes([byte]) for byte in range(256)), b"</s>", b'{"name'),
    frozenset({END}),
    frozenset({END}),
)


@pytest.fixture(scope="module")
def tokens() -> Tokens:
    return Tokens(VOCABULARY, lambda text: list(text.encode()))


def grammar(tokens: Tokens, lark: str) -> LLGrammar:
    return LLGrammar(llguidance.LLMatcher.grammar_from_lark(lark), tokens)


@pytest.fixture
def either(tokens: Tokens) -> EitherGrammar:
    call = grammar(tokens, """start: "{\\"name\\": " /[a-z]+/ "!" """)
    text = grammar(
        tokens, 'start: %json {"type": "object", "x-guidance": {"whitespace_flexible": false}}'
    )
    return EitherGrammar(call, text)


def takes(either: EitherGrammar, text: str, *first: int) -> bool:
    """Whether the text, after these tokens, is a whole answer, letter by letter."""
    constraint = either.start()
    for token in (*first, *text.encode()):
        if not constraint.mask()[token]:
            return False
        constraint.accept(token)
    return bool(constraint.is_done or constraint.mask()[END])


def test_both_are_possible_until_one_is_not(either: EitherGrammar) -> None:
    for whole in ('{"name": abc!', '{"name":"abc"}', "{}", '{"nation":1}', '{"x":[1]}'):
        assert takes(either, whole), whole
    for wrong in ("", '{"name": abc', '{"name": "abc"}', '{"nation": 1}', '{"name":abc!', "x"):
        assert not takes(either, wrong), wrong


def test_a_token_that_both_begin_with_decides_nothing(either: EitherGrammar) -> None:
    both = 257
    assert takes(either, '": abc!', both)
    assert takes(either, '":true}', both)
    assert takes(either, 's":true}', both)
    assert not takes(either, 's": abc!', both)


def test_what_is_forced_is_known_once_one_is_left(tokens: Tokens) -> None:
    constraint = EitherGrammar(
        grammar(tokens, 'start: "abc"'), grammar(tokens, 'start: "xyz"')
    ).start()
    assert constraint.forced is None
    constraint.accept(ord("a"))
    assert constraint.forced == ord("b")
    for byte in b"bc":
        constraint.accept(byte)
    assert constraint.is_done


def test_one_may_end_where_the_other_goes_on(tokens: Tokens) -> None:
    constraint = EitherGrammar(
        grammar(tokens, 'start: "ab"'), grammar(tokens, 'start: "abcd"')
    ).start()
    for byte in b"ab":
        constraint.mask()
        constraint.accept(byte)
    assert not constraint.is_done
    mask = constraint.mask()
    assert mask[END] and mask[ord("c")] and mask.sum() == 2
    constraint.accept(ord("c"))
    assert not constraint.mask()[END]
