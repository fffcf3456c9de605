"""SearXNG: one metasearch engine in front of many."""

from __future__ import annotations

import re
from datetime import date, datetime
from typing import Any

import httpx

from hookline_websearch.provider import Hit, Hits, ProviderError, Query
from hookline_websearch.providers.http import UNREACHED, get_json

MARGIN_SECONDS = 0.3
"""By how much SearXNG stops waiting for its engines before it is no longer waited for, so that one
slow engine does not cost the answers of the others."""

LEAST_SECONDS = 0.3
"""SearXNG waits at least this long for its engines."""

HINTS = {
    UNREACHED: "'hookline websearch setup' says how to run one, and [plugin.websearch] searxng_url "
    "where it is.",
    403: "its JSON interface is off. Put 'json' under search: formats: in its settings.yml.",
    429: "its limiter is on. Set server: limiter: false in its settings.yml.",
}

_COMMANDS = re.compile(r"(?<!\S)[!<:?]+")


class SearXNG:
    """Asks SearXNG's JSON interface at a base URL."""

    name = "searxng"

    def __init__(self, client: httpx.AsyncClient, url: str) -> None:
        self._client = client
        self._url = url.rstrip("/") + "/search"

    async def search(self, query: Query) -> Hits:
        """Asks once; once more without the time range where that leaves nothing, since engines
        without time ranges then answer nothing at all."""
        found = await self._ask(query)
        if query.time_range is None or found.hits:
            return found
        anytime = Query(query.text, query.language, None, query.seconds)
        found = await self._ask(anytime)
        if not found.hits:
            return found
        return Hits(found.hits, (*found.notes, "Nothing was found in the time range asked for."))

    async def _ask(self, query: Query) -> Hits:
        wait = max(query.seconds - MARGIN_SECONDS, LEAST_SECONDS)
        parameters = {
            "q": plain(query.text),
            "format": "json",
            "language": query.language,
            "timeout_limit": f"{wait:.2f}",
        }
        if query.time_range:
            parameters["time_range"] = query.time_range
        body = await get_json(self._client, "SearXNG", self._url, parameters, query.seconds, HINTS)
        results = body.get("results")
        if not isinstance(results, list):
            raise ProviderError("What answers is not SearXNG: its JSON has no 'results'.")
        hits = [_hit(result) for result in results if isinstance(result, dict)]
        return Hits([hit for hit in hits if hit.url], _silent(body.get("unresponsive_engines")))


def plain(text: str) -> str:
    """A query without SearXNG's commands: ``!bang`` redirects or picks engines, ``:de`` sets the
    language, ``<3`` the time. A word that begins like one loses that beginning."""
    return _COMMANDS.sub("", text)


def _hit(result: dict[str, Any]) -> Hit:
    positions = result.get("positions")
    places = positions if isinstance(positions, list) else []
    return Hit(
        url=_text(result, "url"),
        title=_text(result, "title"),
        snippet=_text(result, "content"),
        date=_date(result.get("publishedDate")),
        places=tuple(place for place in places if isinstance(place, int) and place > 0),
    )


def _text(result: dict[str, Any], name: str) -> str:
    value = result.get(name)
    return value.strip() if isinstance(value, str) else ""


def _date(value: Any) -> date | None:
    try:
        return datetime.fromisoformat(value).date()
    except (TypeError, ValueError):
        return None


def _silent(engines: Any) -> tuple[str, ...]:
    """One sentence about engines that did not answer, where there are any."""
    if not isinstance(engines, list) or not engines:
        return ()
    named = [" (".join(map(str, entry[:2])) + ")" for entry in engines if len(entry) > 1]
    return (f"Search engines that did not answer: {', '.join(named)}.",)
