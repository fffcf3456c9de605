"""The plugin: embedders, collections of documents, and answers from them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from hookline import Document, Exchange, InvalidRequest, Server, hookimpl
from hookline_knowledge.base import KnowledgeBase
from hookline_knowledge.chat import transform
from hookline_knowledge.chat.settings import KnowledgeFields
from hookline_knowledge.parsing import Unreadable
from hookline_knowledge.settings import KnowledgeSettings

if TYPE_CHECKING:
    import click
    from quart import Blueprint

NAME = "knowledge"


class Knowledge:
    """Answers from the user's own documents."""

    settings_model = KnowledgeSettings
    request_fields = KnowledgeFields

    def __init__(self, settings: KnowledgeSettings) -> None:
        self._settings = settings
        self._made: KnowledgeBase | None = None

    @hookimpl
    @asynccontextmanager
    async def lifespan(self, server: Server) -> AsyncIterator[None]:
        """Opens the collections, and reads what is waiting. Raises StartError."""
        base = self._base(server)
        async with base.open(), base.reader.running():
            yield

    @hookimpl
    def routes(self, server: Server) -> Blueprint:
        """Files and vector stores."""
        from hookline_knowledge.api import blueprint

        return blueprint(self._base(server))

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
        self, data: bytes, name: str, media_type: str | None, server: Server
    ) -> Document | None:
        """Reads files for others too. Raises InvalidRequest; None for kinds that nobody reads."""
        try:
            return await self._base(server).parser.parse(data, name, media_type)
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

    def _base(self, server: Server) -> KnowledgeBase:
        if self._made is None:
            self._made = KnowledgeBase(self._settings, server)
        return self._made
