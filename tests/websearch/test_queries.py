"""Queries out of a model's words, and out of a person's."""

from __future__ import annotations

import pytest

from hookline_websearch.queries import LONGEST, SENTENCE_MAX, cover, is_query, of_message, usable

INSTRUCTION = "Today is Sunday, 29 November 2026. Write JSON with different search engine queries."


@pytest.mark.parametrize(
    "nonsense",
    [
        *(
            "",
            "   ",
            "...",
            "?!",
            "query",
            "Search query 1",
            "the first query",
            "your search",
            "N/A",
        ),
        *("x" * (LONGEST + 1), "a b c d e f g h i j k l m n o p", "blog blog blog", "LaLa" * 12),
        *("https://example.com/search", "go go go to the go"),
    ],
)
def test_what_is_no_query(nonsense: str) -> None:
    assert not is_query(nonsense)
    assert usable(["northern lighthouse", nonsense], INSTRUCTION, "lighthouses") == []


@pytest.mark.parametrize(
    "query",
    ["tallest lighthouse 2026", "C++ std::vector reserve", "灯塔 高度", "AC/DC"],
)
def test_what_is_a_query(query: str) -> None:
    assert usable([f' "{query}" '], INSTRUCTION, "") == [query]


def test_repetitions_and_copies_of_the_instruction_are_nonsense() -> None:
    assert usable(["lighthouse", "Lighthouse"], INSTRUCTION, "") == []
    assert usable(["different search engine"], INSTRUCTION, "Who built the lighthouse?") == []
    assert usable(["Today is 29 November 2026"], INSTRUCTION, "Who is she?") == []
    said = "What has happened on 29 November?"
    assert usable(["29 November 2026"], INSTRUCTION, said) == ["29 November 2026"]


def test_line_breaks_never_reach_a_query() -> None:
    assert usable(["tall\r\nlighthouse\u202e"], INSTRUCTION, "") == ["tall lighthouse"]


@pytest.mark.parametrize(
    ("queries", "question", "covered"),
    [
        (["Nobel Prize Physics 2026 winner"], "Who won the Nobel Prize in Physics in 2026?", True),
        (["molecules of Lisbon"], "Which restaurants in Lisbon have a Michelin star?", False),
        (["Michelin star", "restaurants Lisbon"], "Which restaurants have a Michelin star?", True),
        (["Marie Curie age"], "How old is she?", True),
        ([], "Who won the election?", False),
    ],
)
def test_whether_queries_cover_a_question(queries: list[str], question: str, covered: bool) -> None:
    assert cover(queries, question) is covered


@pytest.mark.parametrize(
    ("message", "query"),
    [
        ("Who built\nit?", "Who built it?"),
        (
            "Read https://example.com/a?b=1 and tell me of lighthouses",
            "Read and tell me of lighthouses",
        ),
        ("```python\nx = 1\n```\nWhat does this do?", "What does this do?"),
        ("https://example.com/only", "https://example.com/only"),
        ("Long. " * 60 + "Is it tall? And when was it built? Thanks.", "And when was it built?"),
        ("It was long ago. " + "word " * 60, "It was long ago."),
    ],
)
def test_a_message_as_a_query(message: str, query: str) -> None:
    assert of_message(message) == query


def test_a_message_without_an_end_is_cut_at_a_word() -> None:
    query = of_message("lighthouse " * 100)
    assert 100 < len(query) <= SENTENCE_MAX
    assert set(query.split()) == {"lighthouse"}


@pytest.mark.parametrize("message", ["x" * 2000, "灯" * 400, "```\n" + "x = 1\n" * 100 + "```"])
def test_a_message_without_words_or_of_code_alone_is_a_query_too(message: str) -> None:
    assert 1 < len(of_message(message)) <= SENTENCE_MAX
