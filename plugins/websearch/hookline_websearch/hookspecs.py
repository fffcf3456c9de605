"""The hook that this plugin adds."""

from __future__ import annotations

from collections.abc import Sequence

import httpx

from hookline import hookspec
from hookline_websearch.provider import SearchProvider


class SearchHooks:
    """What other plugins can implement."""

    @hookspec
    def search_providers(self, client: httpx.AsyncClient) -> Sequence[SearchProvider] | None:
        """Further providers of search results; ``[plugin.websearch] providers`` chooses by name.

        ``client`` is open as long as the server runs, and takes no proxies and no credentials
        from the environment.
        """
