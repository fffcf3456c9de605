"""Whether to search, and for what: the model decides, and is not believed blindly."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from hookline import (
    ApiError,
    ConstraintSpec,
    Exchange,
    Grammar,
    InvalidRequest,
    Message,
    Server,
    Unavailable,
    quoted,
    with_user_text,
)
from hookline_websearch import queries
from hookline_websearch.smalltalk import needs_no_search

INSTRUCTION = """\
---
Do not answer the message above yet. Today is {today}. First decide whether searching the web \
would help to answer it. Search for facts, news, people, places, products, prices, documentation, \
and whatever may have changed or you are not sure of. Do not search for greetings, sums, \
translations, or to write, rewrite or summarise a text that is already here.
Write JSON: {{"search": true, "queries": [...]}} with at most {most} different search engine \
queries, each a few words that name what it is about, or {{"search": false, "queries": []}}."""

FURTHER = """\
---
Do not answer yet. Today is {today}. A search for the message above has found this so far:

{found}

Write JSON: {{"search": true, "queries": [...]}} with at most {most} further search engine queries \
for what is still missing, other than {used}, or {{"search": false, "queries": []}} where nothing \
is missing."""

WITHOUT_CONSTRAINT = (
    "The plugin 'structured' is not active, so the message was searched for as it stands."
)
TOKENS_FOR_EACH = 24
"""Tokens that a query may take."""

QUERY = r'^[^\s\[\]{}<>"\\_|.,;:-][^\[\]{}<>"\\_|\n\r\t]{1,79}$'
"""A pattern for queries: weak models write JSON and time stamps into them where they can."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What to search for; nothing where no search is needed. ``note`` says what a client should
    know about how that was decided."""

    queries: tuple[str, ...] = ()
    note: str = ""


class Planner:
    """Plans searches with the server's model."""

    def __init__(self, server: Server) -> None:
        self._server = server

    async def plan(
        self,
        messages: Sequence[Message],
        question: str,
        most: int,
        exchange: Exchange | None = None,
    ) -> Plan:
        """A plan for a conversation whose last user message says ``question``.

        The instruction goes to the end, so that the engine keeps the conversation's prompt; with
        the ``exchange`` it belongs to, also where that has tools. Where
        the model cannot be asked, or what it wants to search for is no query, the question itself
        is searched for.
        """
        if reason := needs_no_search(question):
            return Plan(note=reason)
        fallback = queries.of_message(question)
        instruction = INSTRUCTION.format(today=self._today(), most=most)
        try:
            grammar = await self._grammar(most)
        except InvalidRequest:
            return Plan((fallback,), WITHOUT_CONSTRAINT)
        try:
            wanted = await self._ask(messages, instruction, most, grammar, exchange)
        except (InvalidRequest, Unavailable, ValueError):
            return Plan((fallback,))
        if not wanted.search:
            return Plan(note="The model decided that no search is needed.")
        usable = queries.usable(wanted.queries, instruction, _said(messages))
        if not queries.cover(usable, question):
            usable = [fallback, *usable]
        return Plan(tuple(usable[:most]) or (fallback,))

    async def further(
        self,
        messages: Sequence[Message],
        found: str,
        used: Sequence[str],
        most: int,
        exchange: Exchange | None = None,
    ) -> tuple[str, ...]:
        """Queries for what a first search has left open; none where that cannot be had."""
        named = ", ".join(json.dumps(query, ensure_ascii=False) for query in used)
        found = quoted(found)  # by strangers
        instruction = FURTHER.format(today=self._today(), found=found, most=most, used=named)
        try:
            grammar = await self._grammar(most)
            wanted = await self._ask(messages, instruction, most, grammar, exchange)
        except (ApiError, ValueError):
            return ()
        usable = queries.usable(wanted.queries, INSTRUCTION, _said(messages))
        return tuple(query for query in usable[:most] if query not in used)

    async def _ask(
        self,
        messages: Sequence[Message],
        instruction: str,
        most: int,
        grammar: Grammar,
        exchange: Exchange | None,
    ) -> _Wanted:
        conversation = [_without_images(message) for message in messages]
        answer = await self._server.ask(
            with_user_text(conversation, instruction),
            grammar=grammar,
            max_tokens=20 + TOKENS_FOR_EACH * most,
            exchange=exchange,
        )
        return _Wanted.read(answer)

    async def _grammar(self, most: int) -> Grammar:
        return await self._server.constraint(ConstraintSpec("json_schema", schema(most)))

    def _today(self) -> str:
        return f"{self._server.clock():%A, %d %B %Y}"


@dataclass(frozen=True, slots=True)
class _Wanted:
    """What the model wrote."""

    search: bool
    queries: list[str]

    @classmethod
    def read(cls, answer: str) -> _Wanted:
        """Raises ValueError for an answer that was cut."""
        data = json.loads(answer)
        return cls(bool(data["search"]), list(data["queries"]))


def schema(most: int) -> dict[str, Any]:
    """What the model must write."""
    query = {"type": "string", "pattern": QUERY}
    return {
        "anyOf": [
            _object({"const": True}, {"minItems": 1, "maxItems": most, "items": query}),
            _object({"const": False}, {"maxItems": 0}),
        ]
    }


def _object(search: dict[str, Any], listed: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {"search": search, "queries": {"type": "array", **listed}},
        "required": ["search", "queries"],
        "additionalProperties": False,
    }


def _said(messages: Sequence[Message]) -> str:
    return "\n".join(message.text for message in messages if message.role != "system")


def _without_images(message: Message) -> Message:
    return message.model_copy(update={"content": message.text}) if message.images else message
