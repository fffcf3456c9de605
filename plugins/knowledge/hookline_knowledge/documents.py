"""Files as documents, by this plugin or by another that can."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

from hookline import Document, InvalidRequest, Server
from hookline_knowledge.parsing import Parser, Unreadable

ReadFile = Callable[[Path, str, str | None], Awaitable[Document]]
"""Reads the file at a path; name and media type are what its sender says. Raises Unreadable."""


def reader(server: Server, parser: Parser) -> ReadFile:
    """Reads what the parser can, and asks other plugins for the kinds that it cannot."""

    async def read(path: Path, name: str, media_type: str | None) -> Document:
        try:
            return await parser.parse(path, name, media_type)
        except Unreadable as error:
            if error.code != "unsupported_file":
                raise
            document = await _by_others(server, path, name, media_type)
            if document is None:
                raise
            return document

    return read


async def _by_others(
    server: Server, path: Path, name: str, media_type: str | None
) -> Document | None:
    data = await asyncio.to_thread(path.read_bytes)
    try:
        return await server.parse_document(data, name, media_type)
    except InvalidRequest as error:
        raise Unreadable(error.message) from error
