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
    """What all providers found together, best first, and what went wrong with some.

    ``answered`` is whether any of them did: else nothing is known of what there is.
    """

    hits: list[Hit]
    notes: tuple[str, ...]
    answered: bool


async def search(providers: Sequence[SearchProvider], queries: Sequence[Query]) -> Search:
    """Every provider is asked every query; one that fails costs only its own answer."""
    answers = await asyncio.gather(
        *(_ask(provider, query) for query in queries for provider in providers)
    )
    found = [answer for answer in answers if isinstance(answer, Hits)]
    notes = dict.fromkeys(
        note
        for answer in answers
        for note in (answer.notes if isinstance(answer, Hits) else [str(answer)])
    )
    return Search(merged(answer.hits for answer in found), tuple(notes), answered=bool(found))


async def _ask(provider: SearchProvider, query: Query) -> Hits | ProviderError:
    """What a provider found, or why it found nothing out."""
    try:
        async with asyncio.timeout(query.seconds):
            return await provider.search(query)
    except ProviderError as error:
        return error
    except TimeoutError:
        return ProviderError(f"'{provider.name}' did not answer in {query.seconds:.1f} seconds.")
    except Exception as error:
        log.warning("the search provider '%s' failed", provider.name, exc_info=error)
        return ProviderError(f"'{provider.name}' failed: {type(error).__name__}.")
