"""The passages that the model gets to read."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from hookline import Embedder
from hookline_websearch import ranking
from hookline_websearch.passages import Passage, passages_of

log = logging.getLogger(__name__)

EMBEDDED = 24
"""Passages that are compared by meaning, the best by their words first. All would take seconds."""

LEAST_SECONDS = 0.5
"""Time below which comparing by meaning is not begun."""

ALIKE = 0.8
"""Share of words in common from which on one of two passages is enough."""

LEAST_TOKENS = 40
"""Tokens of the budget below which no further passage is tried."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A page that may be quoted: its site, its title, and the text that was read, or at least
    found by the search."""

    site: str
    title: str
    text: str


MISSES = 8
"""Passages that do not fit any more, after which no other is tried: counting takes time."""

CountTokens = Callable[[str], int]


async def choose(
    pages: Sequence[Candidate],
    questions: Sequence[str],
    budget: int,
    count: CountTokens,
    *,
    embedder: Embedder | None = None,
    seconds: float = 1.0,
) -> list[Passage]:
    """The passages that say most about the questions, within a budget of tokens.

    ``pages`` come in the order of the search; ``questions`` are the user's and the queries. The
    result is the best first, and has two sites where there are two. Comparing by meaning is given
    up after so many seconds.
    """
    passages = [passage for n, page in enumerate(pages) for passage in passages_of(n, page.text)]
    texts = [f"{pages[passage.page].title}\n{passage.whole}" for passage in passages]
    words = await ranking.tokenized(texts)
    rankings = await asyncio.to_thread(ranking.lexical, words, questions)
    tops = ranking.beginnings(passages)
    best = ranking.followed(ranking.fused(rankings), tops)
    if embedder is not None and passages:
        worth = ranking.followed(best, range(len(passages)))[:EMBEDDED]
        alike = await _by_meaning(embedder, texts, worth, questions[0], seconds)
        best = ranking.followed(ranking.fused([*rankings, alike]), tops)
    ordered = _two_sites_first([passages[place] for place in best], pages)
    place_of = {id(passage): place for place, passage in enumerate(passages)}
    said = ((passage, set(words[place_of[id(passage)]])) for passage in ordered)
    return _within(said, budget, count)


async def _by_meaning(
    embedder: Embedder, texts: Sequence[str], places: Sequence[int], question: str, seconds: float
) -> list[int]:
    """Those passages that are about the same, most so first; none where that takes too long."""
    if seconds < LEAST_SECONDS:
        return []
    try:
        async with asyncio.timeout(seconds):
            asked = await embedder.embed([question], kind="query")
            vectors = await embedder.embed([texts[place] for place in places])
    except TimeoutError:
        return []
    except Exception as error:
        log.warning("passages are chosen by their words only: %s", error)
        return []
    order = await asyncio.to_thread(ranking.by_meaning, vectors, asked[0])
    return [places[index] for index in order]


def _two_sites_first(best: Sequence[Passage], pages: Sequence[Candidate]) -> list[Passage]:
    """The same with the best passage of a second site at second place."""
    if not best:
        return []
    first = pages[best[0].page].site
    other = next((passage for passage in best if pages[passage.page].site != first), None)
    if other is None:
        return list(best)
    return [best[0], other, *(p for p in best[1:] if p is not other)]


def _within(
    best: Iterable[tuple[Passage, set[str]]], budget: int, count: CountTokens
) -> list[Passage]:
    """As many as fit, best first, without those that say, by their words, what another one says.

    The very first is cut where it does not fit by itself.
    """
    chosen: list[tuple[Passage, set[str]]] = []
    misses = 0
    for passage, said in best:
        if budget < LEAST_TOKENS or misses == MISSES:
            break
        if any(_alike(said, other) for _, other in chosen):
            continue
        cost = count(passage.whole)
        if cost <= budget:
            chosen.append((passage, said))
            budget -= cost
        elif not chosen:
            return [_cut(passage, budget / cost)]
        else:
            misses += 1
    return [passage for passage, _ in chosen]


def _cut(passage: Passage, share: float) -> Passage:
    return replace(passage, text=passage.text[: int(len(passage.text) * share)])


def _alike(one: set[str], other: set[str]) -> bool:
    return len(one & other) >= ALIKE * max(len(one | other), 1)
