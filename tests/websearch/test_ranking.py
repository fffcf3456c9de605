"""Which passages speak of a question."""

from __future__ import annotations

from hookline_websearch.passages import Passage
from hookline_websearch.ranking import beginnings, by_meaning, followed, fused, lexical, tokens


def test_words_and_plurals() -> None:
    assert tokens("Lighthouses' lamps, 1984: glass is ours") == [
        *("lighthouse", "lamp", "1984", "glass", "is", "our")
    ]


def test_languages_without_spaces_are_read_in_pairs() -> None:
    assert tokens("灯塔高度 foo") == ["灯塔", "塔高", "高度", "foo"]
    assert tokens("灯") == ["灯"]


def test_by_words() -> None:
    texts = ["the lamp was lit", "a ship sank", "lamp oil for the lamp of a tower", "nothing"]
    assert lexical(texts, ["lamp oil", "ship", "zebra", "?"]) == [[2, 0], [1], [], []]
    assert lexical([], ["lamp"]) == [[]]
    assert lexical(["", "!"], ["lamp"]) == [[]]


def test_by_meaning() -> None:
    assert by_meaning([[1, 0], [0, 2], [3, 3], [0, 0]], [0, 1]) == [1, 2]


def test_beginnings_of_pages() -> None:
    passages = [Passage(1, 0, "b"), Passage(1, 1, "c"), Passage(0, 0, "a")]
    assert beginnings(passages) == [2, 0]


def test_fusion() -> None:
    assert fused([[1, 2, 3], [3, 2], [2]]) == [2, 3, 1]
    assert fused([]) == []


def test_what_follows_a_ranking() -> None:
    assert followed([3, 1], [1, 2], range(5)) == [3, 1, 2, 0, 4]
