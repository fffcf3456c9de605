"""From a chat request that asks for knowledge to a conversation that holds it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from hookline import (
    Exchange,
    InvalidRequest,
    Message,
    Server,
    Turn,
    Turns,
    sources_header,
    split_after_question,
    turn_of,
    with_user_text,
)
from hookline_knowledge.catalog import Collection, collections
from hookline_knowledge.chat.passages import fitting, room, told
from hookline_knowledge.chat.rewriting import can_depend, rewritten
from hookline_knowledge.chat.settings import ChatSettings, KnowledgeFields
from hookline_knowledge.library import Library
from hookline_knowledge.search import Passage, Searcher

KIND = "knowledge"
HEADER = "X-Knowledge-Sources"
KEPT_BYTES = 8 * 2**20
"""Of passages that are kept for all turns together."""


@dataclass(frozen=True, slots=True)
class _Asked:
    """What a request asks: its question, the conversation as it came, and where to look.

    ``pictures`` are those of the last user message, as ``data:`` URLs, where pictures are looked
    at."""

    question: str
    pictures: Sequence[str]
    said: Sequence[Message]
    among: Sequence[Collection]
    turn: Turn


@dataclass(slots=True)
class _Finding:
    """What was found for a turn, and the query that the model wrote for it, if any."""

    passages: Sequence[Passage] = ()
    query: str = ""

    @property
    def size(self) -> int:
        """About how many bytes it takes."""
        return 1024 + sum(1024 + 4 * len(passage.text) for passage in self.passages)


class Answering:
    """Finds passages for a request, puts them into the conversation, and names the sources."""

    def __init__(
        self, server: Server, library: Library, searcher: Searcher, settings: ChatSettings
    ) -> None:
        self._server = server
        self._library = library
        self._searcher = searcher
        self._settings = settings
        self._turns = Turns[_Finding](KEPT_BYTES)

    async def check(self, exchange: Exchange) -> None:
        """Refuses what cannot be meant, before anything costly happens, and keeps what was said
        before other plugins add to it."""
        if asked := wanted(exchange):
            said, question = list(exchange.messages), question_of(exchange.messages)
            among = await self._collections(asked)
            pictures = pictures_of(said) if self._searcher.sees else []
            turn = turn_of(exchange, KIND, str(asked))
            exchange.state[KIND] = _Asked(question, pictures, said, among, turn)

    async def add_passages(self, exchange: Exchange) -> None:
        """Adds what is found to the question, as text that is data; once found, for the whole
        turn."""
        asked: _Asked | None = exchange.state.get(KIND)
        if asked is None:
            return
        finding = self._turns.get(asked.turn) or _Finding()
        if not await self._holds(finding, asked):
            finding = await self._found(asked, finding.query)
        if finding.passages:
            finding.passages = await asyncio.to_thread(self._fitting, exchange, finding.passages)
            self._add(exchange, asked, finding.passages)
        self._turns.keep(asked.turn, finding, finding.size)

    def _add(self, exchange: Exchange, asked: _Asked, passages: Sequence[Passage]) -> None:
        first = len(exchange.sources) + 1
        for passage in passages:
            exchange.add_source(self._source(passage))
        before, after = split_after_question(exchange.messages, asked.question)
        exchange.messages = [*with_user_text(before, told(first, passages)), *after]

    async def _collections(self, asked: str | Literal[True]) -> Sequence[Collection]:
        if asked is True:
            await self._library.expire()
            return await self._library.catalog.read(collections.all_open)
        return [await self._library.open_collection(asked, "knowledge")]

    async def _holds(self, finding: _Finding, asked: _Asked) -> bool:
        """Whether there are passages, and none of them was deleted or replaced meanwhile."""
        passages = finding.passages
        return bool(passages) and await self._searcher.are_there(passages, asked.among)

    async def _found(self, asked: _Asked, query: str) -> _Finding:
        """What the last message finds; where that is little, what the conversation asks for too,
        with the ``query`` that the model wrote for it before, if it did."""
        settings, search = self._settings, self._searcher.search
        queries = [asked.question.strip(), *asked.pictures]
        found = await search(asked.among, queries, limit=settings.passages)
        if not await self._is_little(found, asked):
            return _Finding(found)
        query = query or await rewritten(self._server, asked.said)
        found = await search(asked.among, [*queries, query], limit=settings.passages)
        return _Finding(found, query)

    async def _is_little(self, found: Sequence[Passage], asked: _Asked) -> bool:
        """Whether the last message may need what was said before it to be understood."""
        if self._settings.rewrite == "never" or not can_depend(asked.said):
            return False
        strong = self._settings.strong_similarity
        strong = await self._searcher.strong() if strong is None else strong
        return all(passage.similarity < strong for passage in found)

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
    return users[-1]


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
