"""The plugin: embedders, collections of documents, and answers from them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from hookline import Document, Embedder, Exchange, InvalidRequest, Server, hookimpl
from hookline_knowledge.base import KnowledgeBase
from hookline_knowledge.chat import transform
from hookline_knowledge.chat.settings import KnowledgeFields
from hookline_knowledge.embedders import Embedders
from hookline_knowledge.parsing import Unreadable
from hookline_knowledge.settings import KnowledgeSettings

if TYPE_CHECKING:
    import click
    from quart import Blueprint

NAME = "knowledge"


class Knowledge:
    """Answers from the user's own documents."""

    api = ">=1.0,<2"
    extras = frozenset({"knowledge"})
    settings_model = KnowledgeSettings
    request_fields = KnowledgeFields

    def __init__(self, settings: KnowledgeSettings) -> None:
        self._settings = settings
        self._made: KnowledgeBase | None = None
        self._embedders: Embedders | None = None

    @hookimpl
    @asynccontextmanager
    async def lifespan(self, server: Server) -> AsyncIterator[None]:
        """Opens the collections, and reads what is waiting. Raises StartError."""
        base = self._base(server)
        try:
            async with base.open(), base.reader.running():
                yield
        finally:
            if self._embedders is not None:
                await self._embedders.close()

    @hookimpl
    def routes(self, server: Server) -> Blueprint:
        """Files, vector stores and embeddings."""
        from hookline_knowledge.api import blueprint
        from hookline_knowledge.embeddings import add_route

        base = self._base(server)
        routes = blueprint(base)
        add_route(routes, server, base.embedder)
        return routes

    @hookimpl
    def list_models(self, server: Server) -> Sequence[Mapping[str, Any]]:
        """The model that embeds."""
        return [self._own(server).about(self._settings.embedder)]

    @hookimpl
    async def create_embedder(self, name: str, server: Server) -> Embedder | None:
        """The embedder of the settings by default, and this plugin's own by their names."""
        if not name:
            return await server.embedder(self._settings.embedder)
        return await self._own(server).get(name)

    @hookimpl
    def commands(self, cli: click.Group) -> None:
        """``hookline knowledge``."""
        from hookline_knowledge.cli import add_to

        add_to(cli, self._settings)

    @hookimpl
    async def admit(self, exchange: Exchange) -> None:
        """Refuses what cannot be meant, before anything costly happens."""
        if self._made is not None:
            await self._made.answering.check(exchange)

    @hookimpl
    async def transform(self, exchange: Exchange) -> None:
        """Adds passages to the last user message, and their sources."""
        if self._made is not None:
            await self._made.answering.add_passages(exchange)

    @hookimpl
    def opening_fields(self, exchange: Exchange) -> Mapping[str, Any] | None:
        """The sources, once knowledge was asked for."""
        return transform.opening_fields(exchange)

    @hookimpl
    def response_headers(self, exchange: Exchange) -> Mapping[str, str] | None:
        """The sources from documents."""
        return transform.response_headers(exchange)

    @hookimpl
    async def parse_document(
        self, data: bytes, name: str, media_type: str | None
    ) -> Document | None:
        """Reads files for others too. Raises InvalidRequest; None for kinds that nobody reads."""
        if self._made is None:
            return None  # for a command the plugin reads files by itself
        try:
            return await self._made.parser.parse(data, name, media_type)
        except Unreadable as error:
            if error.code == "unsupported_file":
                return None
            raise InvalidRequest(f"'{name[:200]}' cannot be read: {error.reason}") from error

    @property
    def base(self) -> KnowledgeBase:
        """What the running plugin works with."""
        if self._made is None:
            raise RuntimeError("the server does not run")
        return self._made

    def _own(self, server: Server) -> Embedders:
        if self._embedders is None:
            self._embedders = Embedders(self._settings, server.data_dir)
        return self._embedders

    def _base(self, server: Server) -> KnowledgeBase:
        if self._made is None:
            self._made = KnowledgeBase(self._settings, server)
        return self._made
