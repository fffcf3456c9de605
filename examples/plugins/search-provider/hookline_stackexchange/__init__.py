"""Web search over the questions of Stack Exchange."""

from __future__ import annotations

import html
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import httpx
from pydantic import BaseModel, ConfigDict, Field

from hookline import hookimpl
from hookline_websearch import Hit, Hits, ProviderError, Query, SearchProvider


class StackExchangeSettings(BaseModel):
    """``[plugin.stackexchange]``"""

    model_config = ConfigDict(extra="forbid")

    url: str = Field("https://api.stackexchange.com/2.3", description="Where its interface is.")
    site: str = Field("stackoverflow", description="Which of its sites.")
    most: int = Field(10, ge=1, le=50, description="Questions a search.")


class Questions:
    """The provider."""

    name = "stackexchange"

    def __init__(self, client: httpx.AsyncClient, settings: StackExchangeSettings) -> None:
        self._client, self._settings = client, settings

    async def search(self, query: Query) -> Hits:
        """Questions that match, the most relevant first. Raises ProviderError."""
        parameters: dict[str, str | int] = {
            "q": query.text,
            "site": self._settings.site,
            "pagesize": self._settings.most,
            "sort": "relevance",
        }
        url = f"{self._settings.url}/search/advanced"
        try:
            response = await self._client.get(url, params=parameters, timeout=query.seconds)
            body = response.json()
        except (httpx.HTTPError, ValueError) as error:
            raise ProviderError(f"Stack Exchange does not answer: {error}.") from error
        if "error_message" in body:
            raise ProviderError(f"Stack Exchange refused the search: {body['error_message']}.")
        return Hits([_hit(question) for question in body.get("items", ())])


class StackExchange:
    """The plugin; it adds to the plugin `websearch`, which must be on."""

    settings_model = StackExchangeSettings

    def __init__(self, settings: StackExchangeSettings) -> None:
        self._settings = settings

    @hookimpl
    def search_providers(self, client: httpx.AsyncClient) -> Sequence[SearchProvider]:
        """One more provider."""
        return [Questions(client, self._settings)]


def _hit(question: dict[str, Any]) -> Hit:
    asked = datetime.fromtimestamp(question["creation_date"], UTC).date()
    return Hit(
        url=question["link"],
        title=html.unescape(question["title"]),
        snippet=f"{question['answer_count']} answers; tags: {', '.join(question['tags'])}",
        date=asked,
    )
