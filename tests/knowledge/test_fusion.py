"""Measures made one, neighbours made one."""

from __future__ import annotations

import pytest

from hookline_knowledge.chunks import Chunk
from hookline_knowledge.store.fusion import score, with_neighbours_joined
from hookline_knowledge.store.records import Hit


def hit(document: int, position: int, text: str, start: int, similarity: float = 0.5) -> Hit:
    chunk = Chunk(text, "page 1", 0, start, start + len(text))
    return Hit(1, document, position, chunk, similarity, similarity / 2)


def test_scores_are_between_0_and_1_and_grow_with_both() -> None:
    assert score(0.0, 0.0, 9.0) == 0 and score(1.0, 9.0, 9.0) == 1
    assert score(0.6, 0.0, 0.0) == 0.6  # there are no words to compare
    assert score(0.5, 0.0, 9.0) < score(0.6, 0.0, 9.0) < score(0.6, 5.0, 9.0)
    assert score(0.6, 4.5, 9.0) == pytest.approx(0.65 * 0.6 + 0.35 * 0.5)


def test_neighbours_stand_in_the_better_ones_place() -> None:
    hits = [
        hit(2, 0, "Other.", 0, 0.4),
        hit(1, 3, "fourth. ", 40, 0.9),
        hit(1, 1, "second ", 20, 0.3),
        hit(1, 2, "third ", 30 - 3, 0.5),
    ]
    joined = with_neighbours_joined(hits)
    assert [(each.document, each.position, each.similarity) for each in joined] == [
        (2, 0, 0.4),
        (1, 3, 0.9),
        (1, 1, 0.5),
    ]
    assert joined[2].text == "second third "


def test_what_neighbours_share_stands_once() -> None:
    hits = [hit(1, 0, "one two three", 0), hit(1, 1, "three four", 8)]
    (joined,) = with_neighbours_joined(hits)
    assert joined.text == "one two three four"
    assert joined.location == "page 1"


def test_other_documents_are_no_neighbours() -> None:
    hits = [hit(1, 0, "one", 0), hit(2, 1, "two", 3)]
    assert with_neighbours_joined(hits) == hits
    assert with_neighbours_joined([]) == []
