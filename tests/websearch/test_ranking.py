"""Which passages speak of a question."""

from __future__ import annotations

import asyncio

from hookline_websearch.passages import Passage
from hookline_websearch.ranking import (
    SLICE,
    beginnings,
    by_meaning,
    followed,
    fused,
    lexical,
    tokenized,
    tokens,
)


def test_words_and_plurals() -> None:
    assert tokens("Lighthouses' lamps, 1984: glass is ours") == [
        *("lighthouse", "lamp", "1984", "glass", "is", "our")
    ]


def test_languages_without_spaces_are_read_in_pairs() -> None:
    assert tokens("灯塔高度 foo") == ["灯塔", "塔高", "高度", "foo"]
    assert tokens("灯") == ["灯"]


async def test_by_words() -> None:
    texts = ["the lamp was lit", "a ship sank", "lamp oil for the lamp of a tower", "nothing"]
    words = await tokenized(texts)
    assert lexical(words, ["lamp oil", "ship", "zebra", "?"]) == [[2, 0], [1], [], []]
    assert lexical([], ["lamp"]) == [[]]
    assert lexical([[], []], ["lamp"]) == [[]]


async def test_many_texts_leave_the_event_loop_free() -> None:
    turns = 0

    async def others() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    beside = asyncio.create_task(others())
    assert await tokenized(["a lamp"] * 10 * SLICE) == [["a", "lamp"]] * 10 * SLICE
    beside.cancel()
    assert turns >= 10


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
