"""Web search for Hookline: answers from pages of the web, with their sources.

`SearchProvider` is what finds addresses for a query. A plugin that adds one builds on this package.
"""

from hookline_websearch.plugin import WebSearch
from hookline_websearch.provider import Hit, Hits, ProviderError, Query, SearchProvider
from hookline_websearch.settings import DepthSettings, WebSearchFields, WebSearchSettings

__all__ = [
    "DepthSettings",
    "Hit",
    "Hits",
    "ProviderError",
    "Query",
    "SearchProvider",
    "WebSearch",
    "WebSearchFields",
    "WebSearchSettings",
]
