"""Two measures made into one, and neighbours into one hit: no input, no output, only numbers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby

from hookline_knowledge.chunks import merged
from hookline_knowledge.store.records import Hit

WORDS_COUNT = 0.35
"""How much of a score comes from words. Measured; from .2 to .4 it makes little difference."""


def score(similarity: float, bm25: float, best: float) -> float:
    """How well a chunk answers, from 0 to 1, by its meaning and by its words.

    A convex combination (Bruch, Gai and Ingber, TOIS 2023). BM25 has no upper end, so it counts in
    relation to the ``best`` that the query finds; where it finds none, as a picture does, meaning
    is all.
    """
    if not best:
        return similarity
    return (1 - WORDS_COUNT) * similarity + WORDS_COUNT * bm25 / best


def with_neighbours_joined(hits: Sequence[Hit]) -> list[Hit]:
    """The hits, best first, with neighbours of one document as one, in the best one's place."""
    rank = {id(hit): place for place, hit in enumerate(hits)}
    by_place = sorted(hits, key=lambda hit: (hit.document, hit.position))
    joined = [
        (min(rank[id(hit)] for hit in run), _as_one(run))
        for _, of_document in groupby(by_place, key=lambda hit: hit.document)
        for run in _runs(list(of_document))
    ]
    return [hit for _, hit in sorted(joined, key=lambda pair: pair[0])]


def _runs(hits: Sequence[Hit]) -> Iterator[list[Hit]]:
    """Hits of one document, in order, by what can be put together."""
    run: list[Hit] = []
    for hit in hits:
        if run and len(merged([each.chunk for each in (*run, hit)])) > 1:
            yield run
            run = []
        run.append(hit)
    if run:
        yield run


def _as_one(run: Sequence[Hit]) -> Hit:
    (chunk,) = merged([hit.chunk for hit in run])
    return replace(
        run[0],
        chunk=chunk,
        similarity=max(hit.similarity for hit in run),
        score=max(hit.score for hit in run),
    )
