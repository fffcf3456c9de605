"""MediaWiki's own search: Wikipedia, or the wiki of a company."""

from __future__ import annotations

import html
import re
from datetime import date, datetime
from typing import Any

import httpx

from hookline_websearch.provider import Hit, Hits, ProviderError, Query
from hookline_websearch.providers.http import get_json

MOST = 10
LONGEST_QUERY = 300
"""MediaWiki refuses longer ones."""

_TAG = re.compile(r"<[^>]*>")


class MediaWiki:
    """Asks the ``api.php`` of one wiki. Language and time range are the wiki's own."""

    name = "mediawiki"

    def __init__(self, client: httpx.AsyncClient, url: str) -> None:
        self._client = client
        self._url = url

    async def search(self, query: Query) -> Hits:
        """Pages of the wiki, with the addresses that it gives them."""
        text = query.text[:LONGEST_QUERY]
        parameters = {
            "action": "query",
            "format": "json",
            "formatversion": "2",
            "list": "search",
            "srsearch": text,
            "srlimit": MOST,
            "generator": "search",
            "gsrsearch": text,
            "gsrlimit": MOST,
            "prop": "info",
            "inprop": "url",
        }
        body = await get_json(self._client, "The wiki", self._url, parameters, query.seconds)
        if "error" in body:
            raise ProviderError(f"The wiki refused the search: {_reason(body['error'])}.")
        found = body.get("query")
        if not isinstance(found, dict):
            return Hits()
        urls = {page.get("pageid"): page.get("fullurl") for page in found.get("pages", [])}
        return Hits(
            [
                _hit(result, urls[result["pageid"]])
                for result in found.get("search", [])
                if urls.get(result.get("pageid"))
            ]
        )


def _hit(result: dict[str, Any], url: str) -> Hit:
    snippet = html.unescape(_TAG.sub("", str(result.get("snippet", ""))))
    return Hit(url, str(result.get("title", "")), snippet, _date(result.get("timestamp")))


def _date(value: Any) -> date | None:
    """The day of the page's last change."""
    try:
        return datetime.fromisoformat(value).date()
    except (TypeError, ValueError):
        return None


def _reason(error: Any) -> str:
    info = error.get("info") if isinstance(error, dict) else error
    return str(info).rstrip(".")[:200]
