"""Asking all providers all queries at once."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass

from hookline_websearch.merging import merged
from hookline_websearch.provider import Hit, Hits, ProviderError, Query, SearchProvider

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Search:
    """What all providers found together, best first, and what went wrong with some."""

    hits: list[Hit]
    notes: tuple[str, ...]


async def search(providers: Sequence[SearchProvider], queries: Sequence[Query]) -> Search:
    """Every provider is asked every query; one that fails costs only its own answer."""
    answers = await asyncio.gather(
        *(_ask(provider, query) for query in queries for provider in providers)
    )
    notes = dict.fromkeys(note for answer in answers for note in answer.notes)
    return Search(merged(answer.hits for answer in answers), tuple(notes))


async def _ask(provider: SearchProvider, query: Query) -> Hits:
    try:
        async with asyncio.timeout(query.seconds):
            return await provider.search(query)
    except ProviderError as error:
        return Hits(notes=(str(error),))
    except TimeoutError:
        return Hits(notes=(f"'{provider.name}' did not answer in {query.seconds:.1f} seconds.",))
    except Exception as error:
        log.warning("the search provider '%s' failed", provider.name, exc_info=error)
        return Hits(notes=(f"'{provider.name}' failed: {type(error).__name__}.",))
