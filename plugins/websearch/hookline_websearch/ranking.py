"""Which passages speak of a question: by their words, by their meaning, by their page's place."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from hookline_websearch.merging import reciprocal
from hookline_websearch.passages import Passage

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Ranking = Sequence[int]
"""Places of passages in their list, the best first; those that say nothing are left out."""

SLICE = 16
"""Texts that are cut into words at once."""

RELEVANT = 0.25
"""Share of the best score below which a passage counts as saying nothing: every text has some word
of a question, if only "the"."""

_WORD = re.compile(r"[^\W_]+")
_UNSPACED = re.compile(r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff]+")


def tokens(text: str) -> list[str]:
    """The words of a text, without a plural's s; pairs of characters where words have no spaces
    between them."""
    found: list[str] = []
    for word in _WORD.findall(text.lower()):
        if _UNSPACED.search(word):
            found += [word[i : i + 2] for i in range(max(len(word) - 1, 1))]
        else:
            found.append(word[:-1] if len(word) > 3 and word[-1] == "s" != word[-2] else word)
    return found


async def tokenized(texts: Sequence[str]) -> list[list[str]]:
    """The words of each text.

    A few texts at a time, with the event loop in between: a thread would keep the interpreter's
    lock from it for longer.
    """
    words: list[list[str]] = []
    for start in range(0, len(texts), SLICE):
        words += map(tokens, texts[start : start + SLICE])
        await asyncio.sleep(0)
    return words


def lexical(words: Sequence[Sequence[str]], queries: Sequence[str]) -> list[list[int]]:
    """For each query the texts, given by their words, that have its own, best first, by BM25."""
    import bm25s

    logging.getLogger("bm25s").setLevel(logging.WARNING)  # it sets itself to DEBUG
    if not any(words):
        return [[] for _ in queries]
    index = bm25s.BM25()
    index.index(words, show_progress=False)
    known = {word for text in words for word in text}
    rankings = []
    for query in queries:
        asked = [word for word in tokens(query) if word in known]
        rankings.append(_best_first(index.get_scores(asked)) if asked else [])
    return rankings


def by_meaning(vectors: Sequence[Sequence[float]], question: Sequence[float]) -> list[int]:
    """The vectors that are like the question, most like it first, by cosine similarity."""
    import numpy as np

    matrix = np.asarray(vectors, dtype=np.float32)
    target = np.asarray(question, dtype=np.float32)
    norms = np.linalg.norm(matrix, axis=1) * np.linalg.norm(target)
    return _best_first(matrix @ target / np.maximum(norms, 1e-9))


def warm_up() -> None:
    """Imports what takes its time to import, so that the first search need not wait for it."""
    lexical([["warm"]], ["warm"])


def _best_first(scores: NDArray[np.float32]) -> list[int]:
    least = max(float(scores.max()) * RELEVANT, 1e-9)
    return [int(place) for place in (-scores).argsort(kind="stable") if scores[place] >= least]


def followed(ranking: Ranking, *rest: Iterable[int]) -> list[int]:
    """A ranking with others after it, each place once."""
    return list(dict.fromkeys([*ranking, *(place for other in rest for place in other)]))


def beginnings(passages: Sequence[Passage]) -> list[int]:
    """The first passage of each page, in the order of the pages."""
    first = [place for place, passage in enumerate(passages) if passage.place == 0]
    return sorted(first, key=lambda place: passages[place].page)


def fused(rankings: Iterable[Ranking]) -> list[int]:
    """One ranking from several by reciprocal rank fusion."""
    scores: dict[int, float] = {}
    for ranking in rankings:
        for rank, place in enumerate(ranking, start=1):
            scores[place] = scores.get(place, 0.0) + reciprocal(rank)
    return sorted(scores, key=lambda place: (-scores[place], place))
