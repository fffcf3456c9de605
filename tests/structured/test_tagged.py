"""Text that is free until something opens a constrained part."""

from __future__ import annotations

from typing import Any

import pytest

from hookline import Vocabulary
from hookline_structured.grammar import LLGrammar
from hookline_structured.refusal import Refused
from hookline_structured.tagged import read_tagged
from hookline_structured.tokens import Tokens

END, OPEN, LONGER = 256, 257, 258
VOCABULARY = Vocabulary(
    (*(bytes([byte]) for byte in range(256)), b"</s>", b"<call>", b"<call>!"),
    frozenset({END, OPEN, LONGER}),
    frozenset({END}),
)
INTEGER = {"schema": {"type": "integer"}}


@pytest.fixture(scope="module")
def tokens() -> Tokens:
    return Tokens(VOCABULARY, lambda text: list(text.encode()))


def grammar(tokens: Tokens, **value: Any) -> LLGrammar:
    tagged = read_tagged(value)
    return LLGrammar(tagged.source(dict(tagged.schemas()), tokens.special, compact=True), tokens)


def accepted(made: LLGrammar, *texts: str | list[int]) -> list[bool]:
    ids = [text if isinstance(text, list) else list(text.encode()) for text in texts]
    return [made.completes(one) for one in ids]


def test_a_tree_of_every_kind(tokens: Tokens) -> None:
    parts = [{"optional": "a"}, {"any": ["b", ["c", INTEGER]]}, {"regex": "[xy]{2}"}]
    made = grammar(tokens, then=["<", *parts, {"repeat": ["-", INTEGER]}, {"until": "</p>"}])
    assert accepted(made, "<bxy</p>", "<abyx-1-20 <p> </p>", "<c-7xx</p>") == [True] * 3
    assert accepted(made, "", "b", "<bxz</p>", "<axx</p>", "<bxy</p>!", "<bxy") == [False] * 6


def test_a_trigger_opens_the_rest_wherever_it_is(tokens: Tokens) -> None:
    made = grammar(tokens, triggers=["<f>", "<g>"], then=[INTEGER, ";"])
    assert accepted(made, "", "free < text", "<f>1;", "see <g>22;") == [True] * 4
    assert accepted(made, "<f>", "<f>x;", "<f>1; and more", "a <g>") == [False] * 4


def test_a_trigger_at_the_beginning_only(tokens: Tokens) -> None:
    made = grammar(tokens, triggers=["{"], anywhere=False, then=[INTEGER, "}"])
    assert accepted(made, "{1}", "\n {1}", "", "a {x", "a") == [True] * 5
    assert accepted(made, "{x}", " {", "{1}x") == [False] * 3


def test_control_tokens_in_texts_are_those_tokens(tokens: Tokens) -> None:
    made = grammar(tokens, triggers=["<call>"], then=["(", INTEGER, ")"])
    written = [*b"Hm ", OPEN, *b"(5)"]
    assert accepted(made, written, [OPEN, *b"x"], "<call>x") == [True, False, True]
    whole = grammar(tokens, then="a<call>b<call>!")
    assert accepted(whole, [*b"a", OPEN, *b"b", LONGER], "a<call>b<call>!") == [True, False]


def test_a_part_that_stands_twice_is_written_once(tokens: Tokens) -> None:
    part = {"any": ["x", INTEGER]}
    tagged = read_tagged({"then": [part, {"repeat": [",", part]}]})
    assert len(tagged.schemas()) == 1
    source = tagged.source(dict(tagged.schemas()), {}, compact=True)
    assert source.count("%json") == 1
    assert accepted(LLGrammar(source, tokens), "1,x,22", "x", "1,") == [True, True, False]


@pytest.mark.parametrize(
    ("value", "place"),
    [
        ("x", ()),
        ({}, ()),
        ({"then": "a", "when": "b"}, ("when",)),
        ({"then": "a", "triggers": "b"}, ("triggers",)),
        ({"then": "a", "triggers": [""]}, ("triggers",)),
        ({"then": "a", "anywhere": 1}, ("anywhere",)),
        ({"then": 5}, ("then",)),
        ({"then": {"any": ["a"], "optional": "b"}}, ("then",)),
        ({"then": ["a", {"all": []}]}, ("then", 1, "all")),
        ({"then": {"any": []}}, ("then", "any")),
        ({"then": {"until": ""}}, ("then", "until")),
        ({"then": {"regex": "(?=x)"}}, ("then", "regex")),
        ({"then": "a", "otherwise": {"regex": "b"}}, ("otherwise",)),
        ({"then": "a", "triggers": ["a"], "otherwise": {"regex": "b"}}, ("otherwise",)),
        ({"then": "a", "triggers": ["a"], "anywhere": False, "otherwise": "b"}, ("otherwise",)),
        (
            {"then": "a", "triggers": ["a"], "anywhere": False, "otherwise": {"tagged": {}}},
            ("otherwise",),
        ),
    ],
)
def test_what_cannot_be_read_says_where(value: Any, place: tuple[str | int, ...]) -> None:
    with pytest.raises(Refused) as refused:
        read_tagged(value)
    assert refused.value.place == place
