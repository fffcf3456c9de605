"""The embedder of the settings, whoever makes it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeAlias

from hookline import Embedder, Server
from hookline_knowledge.problems import KnowledgeUnavailable

EmbedderOf: TypeAlias = Callable[[], Awaitable[Embedder]]
"""Gives the embedder. Raises KnowledgeUnavailable."""


def embedder_of(server: Server) -> EmbedderOf:
    """A function that gives the server's default embedder, made when it is first needed."""

    async def embedder() -> Embedder:
        found = await server.embedder()
        if found is None:
            raise KnowledgeUnavailable(
                "There is no embedding model, so nothing can be searched or added. See "
                "[plugin.knowledge] embedder, and GET /health."
            )
        return found

    return embedder
