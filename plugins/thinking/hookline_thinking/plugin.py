"""The hooks: who thinks, what the prompt and the engine are told, and what becomes of the tags."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

from hookline import (
    Exchange,
    InvalidRequest,
    Job,
    Server,
    Stage,
    Unavailable,
    hookimpl,
    with_system_text,
)
from hookline_thinking.budget import EndTag, Thought
from hookline_thinking.settings import ThinkingFields, ThinkingSettings
from hookline_thinking.stage import HiddenThoughtStage, ThoughtStage
from hookline_thinking.tags import Tags


class Thinking:
    """Lets the model think before it answers, where a request asks for it."""

    api = ">=1.0,<2"
    extras = frozenset({"thinking"})
    settings_model = ThinkingSettings
    request_fields = ThinkingFields

    def __init__(self, settings: ThinkingSettings) -> None:
        self._settings = settings
        self._server: Server
        self._end_tags: dict[str, EndTag] = {}

    @hookimpl
    @asynccontextmanager
    async def lifespan(self, server: Server) -> AsyncIterator[None]:
        """Keeps the server, which knows the model."""
        self._server = server
        yield

    @hookimpl
    def list_models(self, server: Server) -> Sequence[Mapping[str, Any]]:
        """Whether the loaded model can think, by itself or by force."""
        try:
            name = server.engine.card.id
        except Unavailable:
            return []
        return [{"id": name, "thinking": self._tags().native or self._settings.force}]

    @hookimpl
    async def admit(self, exchange: Exchange) -> None:
        """Refuses what contradicts itself, and a thought where the model cannot have one."""
        _refuse_contradiction(exchange)
        if self._budget(exchange) and not (self._tags().native or self._settings.force):
            raise InvalidRequest(
                f"The model '{exchange.model}' cannot think: its chat template knows nothing of "
                "it. Leave 'enable_thinking' out, or let the server make it think with force = "
                "true in [plugin.thinking].",
                param="enable_thinking",
            )

    @hookimpl
    async def transform(self, exchange: Exchange) -> None:
        """Tells a model that does not know by itself how to think."""
        tags = self._tags()
        if self._budget(exchange) and not tags.native:
            told = self._settings.instruction
            told = told.replace("{begin}", tags.begin).replace("{end}", tags.end)
            exchange.messages = with_system_text(exchange.messages, told)

    @hookimpl
    def template_vars(self, exchange: Exchange) -> Mapping[str, Any]:
        """The names under which chat templates know these things."""
        budget = self._budget(exchange)
        switches = {"enable_thinking": bool(budget), "thinking": bool(budget)}
        if not budget:
            return switches
        effort = exchange.fields(ThinkingFields).reasoning_effort
        return {**switches, "reasoning_effort": effort, "thinking_budget": budget}

    @hookimpl
    def begin_answer(self, exchange: Exchange, prompt: str) -> str:
        """Opens the thought, or closes the one that the template opens always."""
        return self._tags().beginning(prompt, thinks=bool(self._budget(exchange)))

    @hookimpl
    async def shape_job(self, exchange: Exchange, job: Job) -> None:
        """Ends the thought in time, and has whatever constrains the answer begin after it."""
        if budget := self._budget(exchange):
            tag = self._tags().end
            closing = f"{self._settings.closing}{tag}\n\n"
            ids = self._server.engine.tokenize(closing, special=True)
            job.opening = Thought(await self._end_tag(tag), budget, ids)

    @hookimpl
    def stage(self, exchange: Exchange) -> Stage | None:
        """Takes the thought, asked for or not, out of the answer. Raw completions stay raw."""
        if not isinstance(exchange.request, ThinkingFields):
            return None
        if self._budget(exchange):
            return ThoughtStage(self._tags(), exchange.usage)
        return HiddenThoughtStage(self._tags(), exchange.usage)

    def _tags(self) -> Tags:
        server = self._server
        return Tags.of_model(server.engine.card.id, server.chat_template, self._settings)

    def _budget(self, exchange: Exchange) -> int:
        """Most tokens of the thought; 0 when there is to be none."""
        asked = exchange.fields(ThinkingFields)
        effort = asked.reasoning_effort
        if not (asked.enable_thinking or _in_template_kwargs(exchange)) or effort == "none":
            return 0
        if asked.thinking_budget is not None:
            return asked.thinking_budget
        return int(getattr(self._settings.budgets, effort))

    async def _end_tag(self, text: str) -> EndTag:
        if text not in self._end_tags:
            self._end_tags[text] = await asyncio.to_thread(EndTag, text, self._server.engine)
        return self._end_tags[text]


def _in_template_kwargs(exchange: Exchange) -> bool:
    """Whether thinking is on among the variables for the template."""
    kwargs = getattr(exchange.request, "chat_template_kwargs", {})
    return kwargs.get("enable_thinking") is True


def _refuse_contradiction(exchange: Exchange) -> None:
    """Raises InvalidRequest where the two places to turn thinking on do not agree."""
    kwargs = getattr(exchange.request, "chat_template_kwargs", {})
    if (there := kwargs.get("enable_thinking")) is None:
        return
    if not isinstance(there, bool):
        raise InvalidRequest(
            "'chat_template_kwargs.enable_thinking': must be true or false.",
            param="chat_template_kwargs.enable_thinking",
        )
    set_here = "enable_thinking" in exchange.request.model_fields_set
    if set_here and exchange.fields(ThinkingFields).enable_thinking != there:
        raise InvalidRequest(
            "'enable_thinking' and 'chat_template_kwargs.enable_thinking' contradict each other. "
            "Leave one of them out.",
            param="enable_thinking",
        )
