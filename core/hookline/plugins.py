"""Plugins at work: a typed call of every hook, in the order of the plugins.

`hookline.isolation` keeps each plugin's failures to itself.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import pluggy
from pydantic import BaseModel

from hookline.answer_checks import (
    are_fields,
    are_messages,
    is_headers,
    is_json,
    is_mapping,
    is_text,
)
from hookline.config import IsolationSettings, ModelSettings
from hookline.constraints import ConstraintSpec
from hookline.documents import Document
from hookline.engine import Engine, Grammar, Job
from hookline.errors import ApiError, PluginFailed, StartError
from hookline.exchange import Caller, Exchange
from hookline.guarded_stage import GuardedStage
from hookline.isolation import Call, Isolation
from hookline.merging import Merger
from hookline.order import Order, order_of
from hookline.plugin import Plugin
from hookline.server import Embedder, Server
from hookline.stream import Stage

if TYPE_CHECKING:
    import click
    from quart import Blueprint

log = logging.getLogger(__name__)

LONG = frozenset({"transform", "create_constraint", "create_embedder", "parse_document"})
"""Hooks that may work long, and have a budget of their own."""


@dataclass(slots=True)
class Plugins:
    """All plugins of one server.

    ``found`` holds every plugin by name, also those that failed, as they stand without wishes for
    another place; ``manager`` only working ones.
    """

    found: dict[str, Plugin]
    manager: pluggy.PluginManager
    limits: IsolationSettings = field(default_factory=IsolationSettings)
    isolation: Isolation = field(init=False)
    _calls: dict[str, tuple[Call, ...]] = field(default_factory=dict)
    _merger: Merger = field(init=False)

    def __post_init__(self) -> None:
        self.isolation = Isolation(self.limits)
        self._merger = Merger(self.isolation)

    # What is there

    def active(self) -> list[Plugin]:
        """The plugins that work."""
        return [plugin for plugin in self.found.values() if plugin.state == "active"]

    def request_fields(self) -> list[type[BaseModel]]:
        """The request fields that working plugins add."""
        return [plugin.request_fields for plugin in self.active() if plugin.request_fields]

    def order(self, hook: str) -> Order:
        """In which order the working plugins are called, and what became of their wishes."""
        return order_of([plugin for plugin in self.active() if not plugin.core], hook)

    def calls(self, hook: str) -> tuple[Call, ...]:
        """Who implements a hook, in the order of calls: the server's own last."""
        if hook not in self._calls:
            self._calls[hook] = tuple(self._implementations(hook))
        return self._calls[hook]

    def _implementations(self, hook: str) -> Iterator[Call]:
        made = {impl.plugin_name: impl for impl in getattr(self.manager.hook, hook).get_hookimpls()}
        own = [plugin.name for plugin in self.active() if plugin.core]
        long = hook in LONG
        budget = self.limits.transform_seconds if long else self.limits.hook_seconds
        for name in [*self.order(hook).names, *own]:
            if (impl := made.get(name)) is not None:
                yield Call(self.found[name], hook, impl.function, tuple(impl.argnames), budget)

    def fail(self, plugin: Plugin, reason: str) -> None:
        """Takes a plugin out of service."""
        plugin.fail(reason)
        self._calls.clear()

    # Once a process

    def lifespan(
        self, server: Server
    ) -> Iterator[tuple[Plugin, Callable[[], AbstractAsyncContextManager[None]]]]:
        """What makes each plugin's context manager. It may raise: then the plugin cannot start."""
        for call in self.calls("lifespan"):
            yield call.plugin, partial(self.isolation.make, call, {"server": server})

    def routes(self, server: Server) -> Iterator[tuple[Plugin, Callable[[], Blueprint]]]:
        """What makes each plugin's blueprint. It may raise: then its routes cannot be used."""
        for call in self.calls("routes"):
            yield call.plugin, partial(self.isolation.make, call, {"server": server})

    def commands(self) -> Iterator[tuple[Plugin, Callable[[click.Group], None]]]:
        """What adds each plugin's commands. It may raise: then they cannot be used."""
        for call in self.calls("commands"):
            yield call.plugin, partial(self._add_commands, call)

    def _add_commands(self, call: Call, cli: click.Group) -> None:
        self.isolation.make(call, {"cli": cli})

    def list_models(self, server: Server) -> list[Mapping[str, Any]]:
        """Models besides the loaded one."""
        models: list[Mapping[str, Any]] = []

        def add(answer: Sequence[Mapping[str, Any]]) -> None:
            for model in answer:
                is_json(model)
            models.extend({**model, "id": str(model["id"])} for model in answer)

        for call in self.calls("list_models"):
            self.isolation.ask(call, {"server": server}, use=add)
        return models

    def create_engine(self, model: ModelSettings) -> Engine | None:
        """The first engine that a plugin makes. Lets StartError through: it is the answer."""
        for call in self.calls("create_engine"):
            try:
                engine: Engine | None = call({"model": model})
            except Exception as error:
                if call.plugin.core or isinstance(error, StartError):
                    raise
                self.isolation.failed(call, None, error)
            else:
                if engine is not None:
                    return engine
        return None

    # Once a request

    async def authenticate(self, headers: Mapping[str, str], address: str) -> Caller | None:
        """The first caller that a plugin recognises. A failing plugin refuses: fail closed."""
        arguments = {"headers": headers, "address": address}
        caller = await self._first("authenticate", arguments, closed=True)
        return cast("Caller | None", caller)

    async def admit(self, exchange: Exchange) -> None:
        """The first of a request's hooks. Raises what refuses it, and PluginPaused."""
        self.isolation.choose(exchange)
        await self._each("admit", exchange, {"exchange": exchange})

    async def transform(self, exchange: Exchange) -> None:
        """Lets every plugin edit the messages; what one that fails did to the list is undone."""
        for call in self.calls("transform"):
            await self._transform(call, exchange)

    async def _transform(self, call: Call, exchange: Exchange) -> None:
        before, worked = [*exchange.messages], False

        def check(_: object) -> None:
            nonlocal worked
            are_messages(exchange.messages)
            worked = True

        await self.isolation.wait(call, {"exchange": exchange}, exchange, use=check)
        if not worked:
            exchange.messages = before

    def template_vars(self, exchange: Exchange) -> dict[str, Any]:
        """Template variables of all plugins; later wins."""
        return self._merger.merged(self.calls("template_vars"), exchange, is_mapping)

    def render_prompt(
        self,
        exchange: Exchange,
        messages: Sequence[Mapping[str, Any]],
        variables: Mapping[str, Any],
    ) -> str | None:
        """The first prompt text that a plugin writes."""
        arguments = {"exchange": exchange, "messages": messages, "variables": variables}
        for call in self.calls("render_prompt"):
            text: str | None = self.isolation.ask(call, arguments, exchange, is_text)
            if text is not None:
                return text
        return None

    def begin_answer(self, exchange: Exchange, prompt: str) -> str:
        """What the plugins begin the answer with, one after the other."""
        begun = ""
        for call in self.calls("begin_answer"):
            arguments = {"exchange": exchange, "prompt": prompt + begun}
            begun += self.isolation.ask(call, arguments, exchange, is_text) or ""
        return begun

    async def shape_job(self, exchange: Exchange, job: Job) -> None:
        """Lets every plugin edit the job."""
        await self._each("shape_job", exchange, {"exchange": exchange, "job": job})

    def stages(self, exchange: Exchange, job: Job) -> list[Stage]:
        """The stages of one choice, in plugin order, each guarded."""
        stages: list[Stage] = []
        arguments = {"exchange": exchange, "job": job}
        for call in self.calls("stage"):
            stage = self.isolation.ask(call, arguments, exchange)
            if stage is not None:
                stages.append(GuardedStage(stage, self.isolation, call, exchange))
        return stages

    def opening_fields(self, exchange: Exchange) -> dict[str, Any]:
        """Fields for the first chunk or the body, and what the client must be warned of so far."""
        fields = self._merger.merged(self.calls("opening_fields"), exchange, are_fields)
        return fields | _warnings(exchange)

    def response_headers(self, exchange: Exchange) -> dict[str, str]:
        """Headers of the answer."""
        return self._merger.merged(self.calls("response_headers"), exchange, is_headers)

    def closing_fields(self, exchange: Exchange) -> dict[str, Any]:
        """Fields for the last chunk or the body, and everything the client must be warned of."""
        fields = self._merger.merged(self.calls("closing_fields"), exchange, are_fields)
        return fields | _warnings(exchange)

    async def settle(self, exchange: Exchange, error: BaseException | None) -> None:
        """Tells every plugin that the request is over; never raises."""
        arguments = {"exchange": exchange, "error": error}
        for call in self.calls("settle"):
            if call.plugin.name not in (exchange.paused or ()):
                try:
                    await self.isolation.wait(call, arguments, closed=True)
                except PluginFailed:
                    continue  # it was logged, and the request is over
                except ApiError:
                    log.exception("plugin %s refuses a request that is over", call.plugin.name)

    # Services

    async def create_constraint(self, spec: ConstraintSpec, server: Server) -> Grammar | None:
        """The first compiled constraint. A failing plugin fails the request."""
        arguments = {"spec": spec, "server": server}
        grammar = await self._first("create_constraint", arguments, closed=True)
        return cast("Grammar | None", grammar)

    async def create_embedder(self, name: str, server: Server) -> Embedder | None:
        """The first embedder of that name."""
        embedder = await self._first("create_embedder", {"name": name, "server": server})
        return cast("Embedder | None", embedder)

    async def parse_document(
        self, data: bytes, name: str, media_type: str | None, server: Server
    ) -> Document | None:
        """The file as the first plugin reads it that can."""
        arguments = {"data": data, "name": name, "media_type": media_type, "server": server}
        return cast("Document | None", await self._first("parse_document", arguments))

    def answers(self, hook: str, **arguments: Any) -> list[Any]:
        """What every plugin answers to a hook that one of them added, without the Nones."""
        exchange = arguments.get("exchange")
        answers = [self.isolation.ask(call, arguments, exchange) for call in self.calls(hook)]
        return [answer for answer in answers if answer is not None]

    # How they are called

    async def _each(self, hook: str, exchange: Exchange, arguments: Mapping[str, Any]) -> None:
        for call in self.calls(hook):
            await self.isolation.wait(call, arguments, exchange)

    async def _first(
        self, hook: str, arguments: Mapping[str, Any], *, closed: bool = False
    ) -> object | None:
        """The first answer to an async hook that is none of a request's."""
        for call in self.calls(hook):
            answer: object | None = await self.isolation.wait(call, arguments, closed=closed)
            if answer is not None:
                return answer
        return None


def _warnings(exchange: Exchange) -> dict[str, Any]:
    return {"warnings": [*exchange.warnings]} if exchange.warnings else {}
