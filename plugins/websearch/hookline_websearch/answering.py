"""From a request that asks for the web to a conversation that holds what was found there."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from hookline import (
    ApiError,
    Embedder,
    Exchange,
    Server,
    Turn,
    Turns,
    Unavailable,
    quoted,
    split_after_question,
    turn_of,
    with_user_text,
)
from hookline_websearch.asking import Asked, asked_of
from hookline_websearch.choosing import CountTokens
from hookline_websearch.finding import Finding, fitting
from hookline_websearch.looks import Looks, Shown, design_text, look_at, with_pictures
from hookline_websearch.page import Look
from hookline_websearch.planning import Plan, Planner
from hookline_websearch.provider import SearchProvider, TimeRange
from hookline_websearch.queries import is_about_links, of_message
from hookline_websearch.reading import Reads
from hookline_websearch.research import Outcome, Research, Task
from hookline_websearch.settings import WebSearchSettings
from hookline_websearch.telling import header, room, source_body, summary, told
from hookline_websearch.urls import site_of

log = logging.getLogger(__name__)

NAME = "websearch"
PHASE = "search"

HEAD_TOKENS = 24
"""For the number, title and site above a passage."""

LOOK_TOKENS = 300
"""For how a linked page looks."""

CHARACTERS_A_TOKEN = 3
"""For counting while no model is loaded."""

KEPT_BYTES = 32 * 2**20
"""Of texts and pictures that are kept for all turns together."""


@dataclass(slots=True)
class _State:
    """What a request asks, and once it is known, the ``web_search`` object of its answer."""

    asked: Asked
    turn: Turn
    summary: dict[str, Any] | None = None


class ReadsAndLooks(Reads, Looks, Protocol):
    """What reads pages and shows them."""


class Answering:
    """Searches for requests, and for whoever wants sources alone."""

    def __init__(
        self,
        server: Server,
        settings: WebSearchSettings,
        providers: Sequence[SearchProvider],
        reader: ReadsAndLooks,
    ) -> None:
        self._server = server
        self._settings = settings
        self._providers = providers
        self._reader = reader
        self._planner = Planner(server)
        self._turns = Turns[Finding](KEPT_BYTES)

    def check(self, exchange: Exchange) -> None:
        """Refuses what cannot be meant, and keeps the question before others add to it."""
        if asked := asked_of(exchange, self._settings):
            exchange.state[NAME] = _State(asked, turn_of(exchange, NAME, asked.depth))

    async def add_sources(self, exchange: Exchange) -> None:
        """Adds what is found to the last user message; once found, for the whole turn."""
        state: _State | None = exchange.state.get(NAME)
        if state is None:
            return
        finding = self._found_before(exchange, state)
        if finding is None:
            finding = await self._finding(exchange, state.asked)
            self._keep(state.turn, finding.slim())
        self._add(exchange, state, finding.outcome, finding.looks)

    def _keep(self, turn: Turn, finding: Finding) -> None:
        if not finding.is_in_vain:
            self._turns.keep(turn, finding, finding.size)

    def _add(
        self, exchange: Exchange, state: _State, outcome: Outcome, looks: Sequence[Look]
    ) -> None:
        state.summary = summary(state.asked, outcome)
        added = [design_text(looks)]
        if outcome.sources:
            first = len(exchange.sources) + 1
            added.append(told(first, outcome.sources, state.asked.question))
        for source in outcome.sources:
            exchange.add_source(source_body(source))
        messages, following = split_after_question(exchange.messages, state.asked.question)
        if text := "\n\n".join(filter(None, added)):
            messages = with_user_text(messages, text)
        if self._sees():
            messages = with_pictures(messages, looks)
        exchange.messages = [*messages, *following]

    async def sources(
        self, asked: Asked, language: str | None, time_range: TimeRange | None
    ) -> Outcome:
        """What is found for a query alone, without a conversation."""
        task = Task(
            question=asked.question,
            queries=[]
            if asked.links and is_about_links(asked.question)
            else [of_message(asked.question)],
            limits=asked.limits,
            budget=asked.limits.tokens,
            links=asked.links,
            language=language or self._settings.language,
            time_range=time_range,
            per_site=self._settings.per_site,
        )
        research = Research(
            task, self._providers, self._reader, self._count(), embedder=await self._embedder()
        )
        return await research.run()

    def opening_fields(self, exchange: Exchange) -> Mapping[str, Any]:
        """The sources of all kinds, and how they were found."""
        state: _State | None = exchange.state.get(NAME)
        if state is None or state.summary is None:
            return {}
        return {"sources": exchange.sources, "web_search": state.summary}

    def response_headers(self, exchange: Exchange) -> Mapping[str, str]:
        """The web's sources, where they are known before the answer begins."""
        state: _State | None = exchange.state.get(NAME)
        return header(exchange.sources) if state is not None and state.summary else {}

    def _found_before(self, exchange: Exchange, state: _State) -> Finding | None:
        """What the first message of the turn found, as far as there still is room for it."""
        finding = self._turns.get(state.turn)
        if finding is None:
            return None
        finding = finding.again()
        # Twice as much as is ever chosen: only want of room in the context counts here.
        budget = self._room(exchange, state.asked, 2 * state.asked.limits.tokens)
        finding.outcome.sources = fitting(finding.outcome.sources, budget, self._count())
        return finding

    async def _finding(self, exchange: Exchange, asked: Asked) -> Finding:
        """Plans, and looks at links beside that; then searches and reads."""
        looking = asyncio.create_task(self._looks(exchange, asked))
        try:
            plan = await self._plan(exchange, asked)
            looks = await looking
        finally:
            looking.cancel()
        return Finding(await self._found(exchange, asked, plan, looks), looks)

    def _room(self, exchange: Exchange, asked: Asked, most: int) -> int:
        """Tokens for passages, see `room`."""
        seen = LOOK_TOKENS * len(asked.links) if self._reader.can_look else 0
        return room(exchange, most, self._settings.answer_tokens + seen, self._count())

    async def _looks(self, exchange: Exchange, asked: Asked) -> list[Look]:
        if asked.links and self._reader.can_look:
            exchange.report(PHASE, "looking", ", ".join(map(site_of, asked.links)))
        return await look_at(asked.links, self._reader, self._settings.browser_seconds)

    async def _found(
        self, exchange: Exchange, asked: Asked, plan: Plan, looks: Sequence[Look]
    ) -> Outcome:
        if not plan.queries and not asked.links:
            return Outcome(notes=[plan.note])
        outcome = await self._research(exchange, asked, plan, Shown(self._reader, looks))
        outcome.notes = [*filter(None, [plan.note]), *outcome.notes]
        return outcome

    async def _plan(self, exchange: Exchange, asked: Asked) -> Plan:
        if asked.links and is_about_links(asked.question):
            return Plan(note="The message is about its links, so these were read instead.")
        if not self._settings.plan:
            return Plan((of_message(asked.question),))
        exchange.report(PHASE, "planning", "whether and for what to search")
        most = asked.limits.queries
        return await self._planner.plan(exchange.messages, asked.question, most, exchange)

    async def _research(
        self, exchange: Exchange, asked: Asked, plan: Plan, reader: Reads
    ) -> Outcome:
        count, conversation = self._count(), list(exchange.messages)

        async def further(found: str, used: Sequence[str]) -> Sequence[str]:
            most = asked.limits.queries
            return await self._planner.further(conversation, found, used, most, exchange)

        task = Task(
            question=asked.question,
            queries=plan.queries,
            limits=asked.limits,
            budget=self._room(exchange, asked, asked.limits.tokens),
            links=asked.links,
            language=self._settings.language,
            per_site=self._settings.per_site,
        )
        research = Research(
            task,
            self._providers,
            reader,
            lambda text: count(quoted(text)) + HEAD_TOKENS,
            embedder=await self._embedder(),
            report=lambda step, detail: exchange.report(PHASE, step, detail),
            further=further if self._settings.plan else None,
        )
        return await research.run()

    def _sees(self) -> bool:
        """Whether pictures are of use to the model, and there is a plugin that takes them."""
        plugins = self._server.settings.plugins
        taken = plugins is None or not {"*", "vision"}.isdisjoint(plugins)
        return taken and self._server.engine.card.vision

    def _count(self) -> CountTokens:
        """Counts the model's tokens; a guess while there is none."""
        try:
            engine = self._server.engine
        except Unavailable:
            return lambda text: len(text) // CHARACTERS_A_TOKEN + 1
        return lambda text: len(engine.tokenize(text))

    async def _embedder(self) -> Embedder | None:
        try:
            return await self._server.embedder()
        except ApiError as error:
            log.warning("passages are chosen by their words only: %s", error.message)
            return None
