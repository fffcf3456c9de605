"""The hooks: what may be called, what the prompt and the engine are told, and what was called."""

from __future__ import annotations

import json
import secrets
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any

from hookline import (
    ConstraintSpec,
    Exchange,
    Grammar,
    InvalidRequest,
    Job,
    Message,
    Sampling,
    Server,
    Stage,
    Unavailable,
    hookimpl,
    with_system_text,
)
from hookline_tools.format import ToolFormat
from hookline_tools.formats import choose
from hookline_tools.formats.generic import FREQUENCY_PENALTY, INSTRUCTION, MAY, MUST
from hookline_tools.history import for_template
from hookline_tools.hookspecs import ToolHooks
from hookline_tools.offer import Offer, bounded, offer_of
from hookline_tools.settings import ToolsFields, ToolsSettings
from hookline_tools.stage import CallStage

NAME = "tools"


@dataclass(frozen=True, slots=True)
class _Plan:
    """What a request may call, how, and the grammar of it."""

    offer: Offer
    form: ToolFormat
    grammar: Grammar


class Tools:
    """Lets the model call functions, with arguments that match their schema."""

    api = ">=1.0,<2"
    settings_model = ToolsSettings
    request_fields = ToolsFields
    requires = frozenset({"constraint"})
    hookspecs = ToolHooks

    def __init__(self, settings: ToolsSettings) -> None:
        self._settings = settings
        self._server: Server

    @hookimpl
    @asynccontextmanager
    async def lifespan(self, server: Server) -> AsyncIterator[None]:
        """Keeps the server. Raises StartError for a format that nothing has."""
        self._server = server
        self._form()
        yield

    @hookimpl
    def list_models(self, server: Server) -> Sequence[Mapping[str, Any]]:
        """The loaded model can call tools, and in which format."""
        try:
            name = server.engine.card.id
        except Unavailable:
            return []
        return [{"id": name, "tools": True, "tool_format": self._form().name}]

    @hookimpl
    async def admit(self, exchange: Exchange) -> None:
        """Refuses tools that cannot be called, before anything costly happens."""
        offer = offer_of(exchange)
        if offer is not None:
            form = self._form()
            exchange.state[NAME] = _Plan(offer, form, await self._compile(offer, form))

    @hookimpl
    async def transform(self, exchange: Exchange) -> None:
        """Writes earlier calls the model's way, and tells a model that cannot be told otherwise."""
        form = self._form()
        template = self._server.chat_template
        exchange.messages = for_template(exchange.messages, form, template)
        if (plan := _plan(exchange)) and not form.native:
            exchange.messages = with_instruction(exchange.messages, plan.offer, form)

    @hookimpl
    def template_vars(self, exchange: Exchange) -> Mapping[str, Any] | None:
        """The tools, for the template's own words about them."""
        plan = _plan(exchange)
        if plan is None or not plan.form.native:
            return None
        return {"tools": [tool.for_template() for tool in plan.offer.tools]}

    @hookimpl
    async def shape_job(self, exchange: Exchange, job: Job) -> None:
        """Constrains the answer from its first token, or from where it begins to call.

        Where text must match a format, the answer is either such text or calls.
        """
        if (plan := _plan(exchange)) is None:
            return
        if exchange.answer_format is not None:
            plan = await self._beside(plan, exchange.answer_format)
            exchange.state[NAME], exchange.answer_format = plan, None
        elif job.grammar is not None:
            raise InvalidRequest(
                "'tools' cannot be combined with another constraint on the same answer. Leave one "
                'of them out, or set "tool_choice": "none".',
                param="tools",
            )
        job.grammar = plan.grammar
        if plan.offer.required and not plan.form.native:
            job.sampling = without_loops(job.sampling)

    @hookimpl
    def stage(self, exchange: Exchange) -> Stage | None:
        """Takes the calls out of the answer."""
        if (plan := _plan(exchange)) is None:
            return None
        length = plan.form.id_length

        def new_id() -> str:
            return secrets.token_hex(length)[:length] if length else f"call_{secrets.token_hex(12)}"

        return CallStage(plan.form, plan.offer.schemas, new_id, parallel=plan.offer.parallel)

    def _form(self) -> ToolFormat:
        """How the loaded model writes calls."""
        added = [form for forms in self._server.answers("tool_formats") for form in forms]
        return choose(self._settings.format, self._server.chat_template, added)

    async def _compile(self, offer: Offer, form: ToolFormat) -> Grammar:
        schemas = offer.schemas
        if offer.required and not form.native:  # weak models get lost where nothing ends
            longest = self._settings.longest_text
            schemas = {name: bounded(schema, longest) for name, schema in schemas.items()}
        try:
            value = form.constraint(schemas, required=offer.required, parallel=offer.parallel)
            return await self._server.constraint(ConstraintSpec("tagged", value, "tools"))
        except (InvalidRequest, ValueError):
            await self._find_culprit(offer, form)
            raise

    async def _beside(self, plan: _Plan, text: ConstraintSpec) -> _Plan:
        """The plan where an answer in text must match a format. Raises InvalidRequest where calls
        and text cannot be told apart."""
        offer = plan.offer
        if offer.required:
            return plan
        form = plan.form.standing_alone()
        value = form.constraint(
            offer.schemas,
            required=False,
            parallel=offer.parallel,
            otherwise={text.kind: text.value},
        )
        spec = ConstraintSpec("tagged", value, text.param, {"place": text.param})
        return _Plan(offer, form, await self._server.constraint(spec))

    async def _find_culprit(self, offer: Offer, form: ToolFormat) -> None:
        """Raises InvalidRequest that names the first tool whose schema cannot be used."""
        for name, schema in offer.schemas.items():
            place = offer.place(name)
            try:
                form.arguments.tree(schema)
            except ValueError as error:
                raise InvalidRequest(f"'{place}': {error}.", param=place) from error
            spec = ConstraintSpec("json_schema", schema, place, {"place": place})
            await self._server.constraint(spec)


def without_loops(sampling: Sampling) -> Sampling:
    """Sampling that keeps a weak model from repeating itself, unless it has penalties already."""
    penalties = (sampling.frequency_penalty, sampling.presence_penalty, sampling.repetition_penalty)
    if penalties != (0.0, 0.0, 1.0):
        return sampling
    return replace(sampling, frequency_penalty=FREQUENCY_PENALTY)


def _plan(exchange: Exchange) -> _Plan | None:
    plan: _Plan | None = exchange.state.get(NAME)
    return plan


def with_instruction(messages: Sequence[Message], offer: Offer, form: ToolFormat) -> list[Message]:
    """The conversation with the tools in its system message."""
    tools = [json.dumps(t.for_template()["function"], ensure_ascii=False) for t in offer.tools]
    told = {
        "{tools}": "\n".join(tools),
        "{example}": form.write([("name", '{"argument": "value"}')]),
        "{when}": MUST if offer.required else MAY,
    }
    text = INSTRUCTION
    for name, value in told.items():
        text = text.replace(name, value)
    return with_system_text(messages, text)
