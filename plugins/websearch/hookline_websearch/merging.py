"""One list of pages from many: of several engines, queries and providers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from hookline_websearch.provider import Hit
from hookline_websearch.urls import canonical, is_web, site_of

RANK_CONSTANT = 60
"""How little the first places count more than the next: the k of reciprocal rank fusion (Cormack,
Clarke and Büttcher, SIGIR 2009)."""


@dataclass(slots=True)
class _Found:
    hit: Hit
    score: float = 0.0


def reciprocal(rank: int) -> float:
    """What a place, counted from 1, is worth in reciprocal rank fusion."""
    return 1 / (RANK_CONSTANT + rank)


def merged(lists: Iterable[Sequence[Hit]]) -> list[Hit]:
    """All pages once, best first, by reciprocal rank fusion over every engine's places.

    Of the spellings of one page's address the first is kept, with https where one has it.
    """
    found: dict[str, _Found] = {}
    for hits in lists:
        for place, hit in enumerate(hits, start=1):
            if not is_web(hit.url):
                continue
            entry = found.setdefault(canonical(hit.url), _Found(hit))
            entry.hit = _joined(entry.hit, hit)
            entry.score += sum(map(reciprocal, hit.places or (place,)))
    return [entry.hit for entry in sorted(found.values(), key=lambda entry: -entry.score)]


def at_most(hits: Iterable[Hit], per_site: int) -> Iterator[Hit]:
    """The hits without those of a site that has had so many already."""
    seen: Counter[str] = Counter()
    for hit in hits:
        site = site_of(hit.url)
        seen[site] += 1
        if seen[site] <= per_site:
            yield hit


def _joined(first: Hit, other: Hit) -> Hit:
    """One hit with what either says of a page."""
    secure = other.url.startswith("https:") and not first.url.startswith("https:")
    return replace(
        first,
        url=other.url if secure else first.url,
        title=first.title or other.title,
        snippet=max(first.snippet, other.snippet, key=len),
        date=first.date or other.date,
    )
