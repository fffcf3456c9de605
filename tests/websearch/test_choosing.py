"""What the model gets to read."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Literal

import pytest

from hookline import Usage
from hookline_websearch.choosing import EMBEDDED, LEAST_SECONDS, Candidate, choose

FILLER = "Waves and wind and gulls all day long, and the sea is grey. "


def words(text: str) -> int:
    return len(text.split())


def page(site: str, *paragraphs: str) -> Candidate:
    return Candidate(site, "", "\n\n".join(paragraphs))


def long(begin: str) -> str:
    return begin + " " + FILLER * 12


async def test_the_best_come_first_and_fit() -> None:
    pages = [page("a", long("Gulls."), long("The lamp burns whale oil.")), page("b", long("Sea."))]
    chosen = await choose(pages, ["what oil does the lamp burn"], 400, words)
    assert chosen[0].text.startswith("The lamp burns whale oil.")
    assert sum(words(passage.whole) for passage in chosen) <= 400


async def test_two_sites_where_there_are_two() -> None:
    best = [long(f"The lamp burns oil of kind {n}.") for n in range(8)]
    pages = [page("a", *best), page("a", *best[4:]), page("b", long("A lamp."))]
    budget = 2 * words(best[0]) + 10
    chosen = await choose(pages, ["the lamp burns oil"], budget, words)
    assert len(chosen) == 2
    assert {pages[passage.page].site for passage in chosen} == {"a", "b"}


async def test_what_two_pages_say_alike_is_chosen_once() -> None:
    text = long("The lamp burns oil.")
    pages = [page("a", text), page("b", text), page("c", long("Oil is for the lamp, she said."))]
    chosen = await choose(pages, ["lamp oil"], 2000, words)
    assert sorted(passage.page for passage in chosen) == [0, 2]


async def test_a_passage_that_does_not_fit_is_cut() -> None:
    (only,) = await choose([page("a", "one " * 100)], ["one"], 50, words)
    assert 40 <= words(only.text) <= 50
    assert await choose([page("a", "one " * 100)], ["one"], 10, words) == []


async def test_pages_without_any_word_of_the_question_are_read_from_the_top() -> None:
    pages = [page("a", long("Der Turm."), long("Das Meer.")), page("b", long("Die See."))]
    chosen = await choose(pages, ["lighthouse"], 1000, words)
    assert [(passage.page, passage.place) for passage in chosen] == [(0, 0), (1, 0)]


async def test_nothing_to_choose_from() -> None:
    assert await choose([], ["lamp"], 1000, words) == []
    assert await choose([page("a", "  ")], ["lamp"], 1000, words) == []


class Meaning:
    """An embedder that knows that a beacon is a lighthouse."""

    name = "meaning"
    dimensions = 2
    max_tokens = 256

    def __init__(self, seconds: float = 0.0) -> None:
        self.seconds = seconds
        self.embedded: list[str] = []

    def count(self, text: str) -> int:
        return words(text)

    async def embed(
        self,
        texts: Sequence[str],
        *,
        kind: Literal["query", "document"] = "document",
        usage: Usage | None = None,
    ) -> list[list[float]]:
        if self.seconds < 0:
            raise RuntimeError("the model is broken")
        await asyncio.sleep(self.seconds)
        self.embedded += texts
        return [[1.0, 0.0] if "beacon" in text or kind == "query" else [0.0, 1.0] for text in texts]


async def test_by_meaning_too_where_there_is_an_embedder() -> None:
    pages = [page("a", long("Bread."), long("Soup.")), page("b", long("Rain."), long("A beacon."))]
    plain = await choose(pages, ["lighthouse"], 100, words)
    assert plain[0].text.startswith("Bread.")
    chosen = await choose(pages, ["lighthouse"], 100, words, embedder=Meaning())
    assert chosen[0].text.startswith("A beacon.")


async def test_only_so_many_passages_are_embedded() -> None:
    embedder = Meaning()
    pages = [page("a", *(long(f"Soup number {n}.") for n in range(60)))]
    await choose(pages, ["soup"], 100, words, embedder=embedder)
    assert len(embedder.embedded) == 1 + EMBEDDED


@pytest.mark.parametrize(("takes", "seconds"), [(60, LEAST_SECONDS), (0, 0.0), (-1, 1.0)])
async def test_an_embedder_that_is_slow_or_broken_is_done_without(
    takes: float, seconds: float
) -> None:
    pages = [page("a", long("The lamp."))]
    chosen = await choose(pages, ["lamp"], 500, words, embedder=Meaning(takes), seconds=seconds)
    assert len(chosen) == 1
