"""The hooks: what a request asks for, and what is added to it."""

from __future__ import annotations

import asyncio
import shlex
import shutil
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx

from hookline import Exchange, Server, StartError, hookimpl
from hookline_websearch.answering import Answering
from hookline_websearch.hookspecs import SearchHooks
from hookline_websearch.provider import SearchProvider
from hookline_websearch.providers import MediaWiki, SearXNG
from hookline_websearch.ranking import warm_up
from hookline_websearch.reader import reader
from hookline_websearch.settings import WebSearchFields, WebSearchSettings
from hookline_websearch.setup.child import Child

if TYPE_CHECKING:
    import click
    from quart import Blueprint


class WebSearch:
    """Answers from pages of the web, with their sources."""

    api = ">=1.0,<2"
    extras = frozenset({"websearch"})
    settings_model = WebSearchSettings
    request_fields = WebSearchFields
    hookspecs = SearchHooks
    after = frozenset({"tools"})
    """So that the model plans on the conversation as it will read it."""

    before = frozenset({"vision"})
    """So that pictures of pages are taken care of."""

    def __init__(self, settings: WebSearchSettings) -> None:
        self._settings = settings
        self._answering: Answering

    @hookimpl
    @asynccontextmanager
    async def lifespan(self, server: Server) -> AsyncIterator[None]:
        """Opens what reads and searches. Raises StartError for a provider that nothing has, and
        for a command that is not there."""
        async with AsyncExitStack() as stack:
            client = await stack.enter_async_context(httpx.AsyncClient(trust_env=False))
            providers = chosen(self._settings, server.answers("search_providers", client=client))
            if self._settings.searxng_command:
                await stack.enter_async_context(self._child(client, server.data_dir).running())
            reads = await stack.enter_async_context(reader(self._settings, server))
            self._answering = Answering(server, self._settings, providers, reads)
            warming = asyncio.create_task(asyncio.to_thread(warm_up))
            yield
            await warming

    @hookimpl
    def search_providers(self, client: httpx.AsyncClient) -> Sequence[SearchProvider]:
        """SearXNG and MediaWiki."""
        return [
            SearXNG(client, str(self._settings.searxng_url)),
            MediaWiki(client, str(self._settings.mediawiki_url)),
        ]

    @hookimpl
    def routes(self, server: Server) -> Blueprint:
        """``POST /v1/web_search``."""
        from hookline_websearch.endpoint import blueprint

        return blueprint(self._settings, lambda: self._answering)

    @hookimpl
    def commands(self, cli: click.Group) -> None:
        """``hookline websearch``."""
        from hookline_websearch.setup.commands import add_to

        add_to(cli)

    @hookimpl
    async def admit(self, exchange: Exchange) -> None:
        """Refuses what cannot be searched for, before anything costly happens."""
        self._answering.check(exchange)

    @hookimpl
    async def transform(self, exchange: Exchange) -> None:
        """Searches, and adds what was found to the last user message."""
        await self._answering.add_sources(exchange)

    @hookimpl
    def opening_fields(self, exchange: Exchange) -> Mapping[str, Any]:
        """``sources`` and ``web_search``."""
        return self._answering.opening_fields(exchange)

    @hookimpl
    def response_headers(self, exchange: Exchange) -> Mapping[str, str]:
        """``X-Web-Sources``."""
        return self._answering.response_headers(exchange)

    def _child(self, client: httpx.AsyncClient, folder: Path) -> Child:
        command = self._settings.searxng_command or ""
        program = shlex.split(command)[0]
        if shutil.which(program) is None:
            raise StartError(f"[plugin.websearch] searxng_command: there is no '{program}'.")
        url = str(self._settings.searxng_url)
        return Child(command, url, client, folder / "websearch" / "searxng.log")


def chosen(
    settings: WebSearchSettings, offered: Sequence[Sequence[SearchProvider]]
) -> list[SearchProvider]:
    """The providers that the settings name, in their order. Raises StartError for others."""
    known = {provider.name: provider for group in offered for provider in group}
    for name in settings.providers:
        if name not in known:
            raise StartError(
                f"[plugin.websearch] providers: there is no '{name}'. "
                f"Known: {', '.join(sorted(known))}."
            )
    return [known[name] for name in dict.fromkeys(settings.providers)]
