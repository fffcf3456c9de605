"""Patterns of ECMA-262 in the compiler's syntax: the same texts match."""

from __future__ import annotations

import re
from typing import Any

import llguidance
import pytest

from hookline_structured.grammar import LLGrammar
from hookline_structured.pattern import NotRegular, translate

TEXTS = (
    *("", "a", "b", "ab", "ba", "aab", "a.b", "axb", "A", "Z", "é", "1", "42", "007", "x2"),
    *("&", "a&b", "[", "]", "-", "_", "a-b", "a/b", "\\", '"', "a b", " ", "\t", "foo@bar.com"),
    *("2024-05", "{", "{,3}", "aaa", "~", "^", "$", "abcabc"),
)

SAME = [
    *("^a.b$", r"^[\w-]+$", r"[\w-.]+", r"^\d{2,}$", "a|b", "^a|b$", "(?:ab)+"),
    *(r"(?<year>\d{4})-(\d\d)", r"[\u0041-\u005a]", r"\x41", r"a\/b", r"^[^a-z\d]+$", r"^\s$"),
    *(
        "^a+?b$",
        "[]a]".replace("[]", r"[\]"),
        "[a-]",
        "^.$",
        "~",
        r"\^",
        r"\$",
        "^(a|b|)$",
        r"[\^]",
    ),
    *(r"^\w+@\w+\.\w{2,}$", "é", '"', r"\\", r"^[\[\]{}]$", r"\u0061", r"[.]", r"^(abc){2}$"),
]

REFUSED = {
    "(?=a)": "look-around",
    "(?!a)": "look-around",
    "(?<=a)b": "look-around",
    "(?i)a": "flags",
    r"\bword\b": "word borders",
    r"(a)\1": "back references",
    "a**": "quantifier",
    "*a": "repeats nothing",
    "(a": "not closed",
    "a)": "closes no group",
    "[a": "middle of a class",
    "a\\": "middle of a class or an escape",
    "[]": "matches nothing",
    r"\Z": "not supported",
    r"\ud800": "surrogate",
    "(" * 100 + ")" * 100: "nested deeper",
    "a" * 20_000: "more than",
}


@pytest.mark.parametrize("pattern", SAME)
def test_matches_the_same_texts(pattern: str, tokens: Any) -> None:
    source = llguidance.LLMatcher.grammar_from_regex(
        f"[\\x00-\\u{{10FFFF}}]*(?:{translate(pattern).replace('^', '')})[\\x00-\\u{{10FFFF}}]*"
        if "^" not in pattern and "$" not in pattern
        else translate(pattern)
    )
    grammar = LLGrammar(source, tokens)
    python = re.compile(pattern.replace("(?<year>", "(").replace(r"[\w-.]", r"[\w.-]"), re.ASCII)
    whole = "^" in pattern or "$" in pattern
    for text in TEXTS:
        expected = python.fullmatch(text) if whole else python.search(text)
        assert grammar.completes(list(text.encode())) == bool(expected), text


@pytest.mark.parametrize(
    ("pattern", "match", "other"),
    [
        ("^[a&&b]+$", "a&b", "c"),
        ("^a{,3}$", "a{,3}", "aaa"),
        (r"^\S+$", "é", "a b"),
        ("^[^]$", "x", ""),
    ],
)
def test_means_what_ecma_262_says(pattern: str, match: str, other: str, tokens: Any) -> None:
    grammar = LLGrammar(llguidance.LLMatcher.grammar_from_regex(translate(pattern)), tokens)
    assert grammar.completes(list(match.encode()))
    assert not grammar.completes(list(other.encode()))


@pytest.mark.parametrize("pattern", REFUSED)
def test_refuses_what_is_not_regular(pattern: str) -> None:
    with pytest.raises(NotRegular, match=REFUSED[pattern]):
        translate(pattern)


def test_surrogate_pairs_are_one_character() -> None:
    assert translate(r"\ud83d\ude00") == translate(r"\u{1F600}") == r"\u{1F600}"


@pytest.mark.parametrize(("pattern", "text"), [(r"\s", "\u00a0"), (r"[^\S]", "\u2003")])
def test_takes_only_what_every_engine_calls_white_space(
    pattern: str, text: str, tokens: Any
) -> None:
    grammar = LLGrammar(llguidance.LLMatcher.grammar_from_regex(translate(pattern)), tokens)
    assert grammar.completes(list(b" "))
    assert not grammar.completes(list(text.encode()))
