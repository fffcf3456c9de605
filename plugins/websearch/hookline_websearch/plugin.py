"""The hooks: what a request asks for, and what is added to it."""

from __future__ import annotations

from typing import get_args

from hookline import Exchange, InvalidRequest, hookimpl
from hookline_websearch.settings import Depth, WebSearchFields, WebSearchSettings


class WebSearch:
    """Answers from pages of the web, with their sources."""

    settings_model = WebSearchSettings
    request_fields = WebSearchFields

    def __init__(self, settings: WebSearchSettings) -> None:
        self._settings = settings

    @hookimpl
    async def admit(self, exchange: Exchange) -> None:
        """Refuses a value that means nothing."""
        asked = exchange.fields(WebSearchFields).web_search
        if not isinstance(asked, bool) and asked not in get_args(Depth):
            raise InvalidRequest(
                '\'web_search\' must be true, false, "quick", "balanced" or "deep".',
                param="web_search",
                code="invalid_web_search",
            )
