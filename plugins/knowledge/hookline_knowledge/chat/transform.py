"""From a chat request that asks for knowledge to a conversation that holds it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from hookline import Exchange, InvalidRequest, Message, Server, sources_header, with_user_text
from hookline_knowledge.catalog import Collection, collections
from hookline_knowledge.chat.passages import fitting, room, told
from hookline_knowledge.chat.rewriting import can_depend, rewritten
from hookline_knowledge.chat.settings import ChatSettings, KnowledgeFields
from hookline_knowledge.library import Library
from hookline_knowledge.search import Passage, Searcher

KIND = "knowledge"
HEADER = "X-Knowledge-Sources"


@dataclass(frozen=True, slots=True)
class _Asked:
    """What a request asks: its question, the conversation as it came, and where to look.

    ``pictures`` are those of the last user message, as ``data:`` URLs, where pictures are looked
    at."""

    question: str
    pictures: Sequence[str]
    said: Sequence[Message]
    among: Sequence[Collection]


class Answering:
    """Finds passages for a request, puts them into the conversation, and names the sources."""

    def __init__(
        self, server: Server, library: Library, searcher: Searcher, settings: ChatSettings
    ) -> None:
        self._server = server
        self._library = library
        self._searcher = searcher
        self._settings = settings

    async def check(self, exchange: Exchange) -> None:
        """Refuses what cannot be meant, before anything costly happens, and keeps what was said
        before other plugins add to it."""
        if asked := wanted(exchange):
            said = list(exchange.messages)
            among = await self._collections(asked)
            pictures = pictures_of(said) if self._searcher.sees else []
            exchange.state[KIND] = _Asked(question_of(said), pictures, said, among)

    async def add_passages(self, exchange: Exchange) -> None:
        """Searches, and adds what was found to the last user message, as text that is data."""
        asked: _Asked | None = exchange.state.get(KIND)
        if asked is None or not (found := await self._found(asked)):
            return
        passages = await asyncio.to_thread(self._fitting, exchange, found)
        first = len(exchange.sources) + 1
        for passage in passages:
            exchange.add_source(self._source(passage))
        exchange.messages = with_user_text(exchange.messages, told(first, passages))

    async def _collections(self, asked: str | Literal[True]) -> Sequence[Collection]:
        if asked is True:
            await self._library.expire()
            return await self._library.catalog.read(collections.all_open)
        return [await self._library.open_collection(asked, "knowledge")]

    async def _found(self, asked: _Asked) -> list[Passage]:
        """What the last message finds; where that is little, what the conversation asks for too."""
        settings, search = self._settings, self._searcher.search
        queries = [asked.question, *asked.pictures]
        found = await search(asked.among, queries, limit=settings.passages)
        if settings.rewrite == "never" or not can_depend(asked.said):
            return found
        strong = settings.strong_similarity
        strong = await self._searcher.strong() if strong is None else strong
        if any(passage.similarity >= strong for passage in found):
            return found
        queries.append(await rewritten(self._server, asked.said))
        return await search(asked.among, queries, limit=settings.passages)

    def _fitting(self, exchange: Exchange, found: Sequence[Passage]) -> list[Passage]:
        engine = self._server.engine

        def count(text: str) -> int:
            return len(engine.tokenize(text))

        tokens = room(exchange, self._settings, count)
        return fitting(found, tokens, count, context=exchange.max_ctx)

    def _source(self, passage: Passage) -> dict[str, Any]:
        snippet = " ".join(passage.text.split())[: self._settings.snippet_characters]
        return {
            "type": KIND,
            "snippet": snippet,
            "document": passage.document,
            "document_id": passage.file,
            "location": passage.location,
            "similarity": round(passage.similarity, 4),
        }


def wanted(exchange: Exchange) -> str | bool:
    """The collection that a request names; True for all, False for no knowledge at all."""
    asked = exchange.fields(KnowledgeFields).knowledge
    if asked is None or asked is False:
        return False
    if asked is True or asked == "all":
        return True
    if isinstance(asked, str) and asked.strip():
        return asked
    raise InvalidRequest(
        "'knowledge' must be true, false, \"all\", the name of a collection or its id such as "
        '"c:3".',
        param="knowledge",
        code="invalid_knowledge",
    )


def question_of(said: Sequence[Message]) -> str:
    """The text of the last user message. Raises InvalidRequest where there is none."""
    users = [message.text for message in said if message.role == "user"]
    if not users or not users[-1].strip():
        raise InvalidRequest(
            "'knowledge' searches for the last user message, which has no text here.",
            param="messages",
            code="invalid_request",
        )
    return users[-1].strip()


def pictures_of(said: Sequence[Message]) -> list[str]:
    """The pictures of the last user message, as they came."""
    users = [message for message in said if message.role == "user"]
    return [image.image_url.url for image in users[-1].images] if users else []


def opening_fields(exchange: Exchange) -> Mapping[str, Any]:
    """The sources of all kinds, once knowledge was asked for."""
    return {"sources": exchange.sources} if KIND in exchange.state else {}


def response_headers(exchange: Exchange) -> Mapping[str, str]:
    """The sources from documents."""
    if KIND not in exchange.state:
        return {}
    own = [source for source in exchange.sources if source["type"] == KIND]
    return {HEADER: sources_header(own)}
