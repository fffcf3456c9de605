"""Two rankings made into one, and neighbours into one hit: no input, no output, only lists."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from typing import TypeVar

from hookline_knowledge.chunks import merged
from hookline_knowledge.store.records import Hit

Key = TypeVar("Key", bound=Hashable)

RANK_CONSTANT = 60
"""Of reciprocal rank fusion: how little the first places count more than those after them."""


def fused(rankings: Iterable[Sequence[Key]]) -> list[Key]:
    """One ranking of several, by reciprocal rank (Cormack, Clarke and Büttcher, SIGIR 2009)."""
    scores: dict[Key, float] = {}
    for ranking in rankings:
        for rank, key in enumerate(ranking, start=1):
            scores[key] = scores.get(key, 0.0) + 1 / (RANK_CONSTANT + rank)
    return sorted(scores, key=lambda key: -scores[key])


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
    return replace(run[0], chunk=chunk, similarity=max(hit.similarity for hit in run))
