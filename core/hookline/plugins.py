"""Plugins at work: typed calls of every hook, each plugin's failures kept to itself.

A plugin that raises from the `ApiError` tree refuses the request on purpose. Anything else that it
raises is its own failure: logged with its name, counted, and it costs only that plugin's part,
unless the request asked for one of its fields or the plugin is essential; then the request fails.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import pluggy
from pydantic import BaseModel

from hookline.config import ModelSettings
from hookline.documents import Document
from hookline.engine import Engine, Grammar, Job
from hookline.errors import ApiError, PluginFailed
from hookline.exchange import Caller, Exchange
from hookline.hookspecs import Hooks
from hookline.server import ConstraintSpec, Embedder, Server
from hookline.stream import Delta, Stage

if TYPE_CHECKING:
    import click
    from quart import Blueprint

log = logging.getLogger(__name__)

State = Literal["active", "off", "failed"]
Watch = Callable[[str, str, float, bool], None]
"""Told after every call of a hook: plugin, hook, seconds, whether it failed."""


@dataclass(slots=True)
class Plugin:
    """One plugin as the server knows it, working or not.

    ``reason`` says in one line why a plugin failed or is off. ``core`` marks the server's own.
    """

    name: str
    state: State = "active"
    reason: str | None = None
    instance: object | None = None
    version: str | None = None
    distribution: str | None = None
    essential: bool = False
    core: bool = False
    hooks: tuple[str, ...] = ()
    request_fields: type[BaseModel] | None = None
    settings_model: type[BaseModel] | None = None
    settings: BaseModel | None = None
    failures: int = 0

    def summary(self) -> dict[str, Any]:
        """The plugin for `/health` and ``plugins list``."""
        fields = self.request_fields.model_fields if self.request_fields else {}
        return {
            "name": self.name,
            "state": self.state,
            "reason": self.reason,
            "version": self.version,
            "essential": self.essential,
            "hooks": list(self.hooks),
            "fields": list(fields),
            "failures": self.failures,
        }


@dataclass(frozen=True, slots=True)
class Call:
    """One plugin's implementation of one hook."""

    plugin: Plugin
    hook: str
    function: Callable[..., Any]
    arguments: tuple[str, ...]

    def __call__(self, **arguments: Any) -> Any:
        return self.function(*(arguments[name] for name in self.arguments))


def _ignore(plugin: str, hook: str, seconds: float, failed: bool) -> None:
    """Watches nothing."""


@dataclass(slots=True)
class Plugins:
    """All plugins of one server, in the order of their calls.

    ``found`` holds every plugin by name, also those that failed; ``manager`` only working ones.
    """

    found: dict[str, Plugin]
    manager: pluggy.PluginManager
    watch: Watch = _ignore
    _calls: dict[str, tuple[Call, ...]] = field(default_factory=dict)

    # What is there

    def active(self) -> list[Plugin]:
        """The plugins that work."""
        return [plugin for plugin in self.found.values() if plugin.state == "active"]

    def request_fields(self) -> list[type[BaseModel]]:
        """The request fields that working plugins add."""
        return [plugin.request_fields for plugin in self.active() if plugin.request_fields]

    def calls(self, hook: str) -> tuple[Call, ...]:
        """Who implements a hook, in the order of calls."""
        if hook not in self._calls:
            implementations = getattr(self.manager.hook, hook).get_hookimpls()
            self._calls[hook] = tuple(
                Call(self.found[impl.plugin_name], hook, impl.function, tuple(impl.argnames))
                for impl in reversed(implementations)
                if self.found[impl.plugin_name].state == "active"
            )
        return self._calls[hook]

    def fail(self, plugin: Plugin, reason: str) -> None:
        """Takes a plugin out of service."""
        log.error("plugin %s is off: %s", plugin.name, reason)
        plugin.state, plugin.reason = "failed", reason
        self._calls.clear()

    # Once a process

    def lifespan(
        self, server: Server
    ) -> Iterator[tuple[Plugin, AbstractAsyncContextManager[None]]]:
        """Every plugin's context manager, not yet entered."""
        yield from self._answers("lifespan", server=server)

    def routes(self, server: Server) -> Iterator[tuple[Plugin, Blueprint]]:
        """Blueprints of routes, with their plugin."""
        yield from self._answers("routes", server=server)

    def commands(self, cli: click.Group) -> None:
        """Lets plugins add commands."""
        for call in self.calls("commands"):
            with self._contained(call, None):
                call(cli=cli)

    def list_models(self, server: Server) -> list[Mapping[str, Any]]:
        """Models besides the loaded one."""
        answers = self._answers("list_models", server=server)
        return [model for _, answer in answers for model in answer]

    def create_engine(self, model: ModelSettings) -> Engine | None:
        """The first engine that a plugin makes. Lets StartError through: it is the answer."""
        for call in self.calls("create_engine"):
            engine: Engine | None = call(model=model)
            if engine is not None:
                return engine
        return None

    # Once a request

    async def authenticate(self, headers: Mapping[str, str], address: str) -> Caller | None:
        """The first caller that a plugin recognises. A failing plugin refuses: fail closed."""
        for call in self.calls("authenticate"):
            with self._contained(call, None, closed=True):
                caller: Caller | None = await call(headers=headers, address=address)
                if caller is not None:
                    return caller
        return None

    async def admit(self, exchange: Exchange) -> None:
        """Raises when a plugin refuses."""
        await self._each("admit", exchange)

    async def transform(self, exchange: Exchange) -> None:
        """Lets every plugin edit the messages."""
        await self._each("transform", exchange)

    def template_vars(self, exchange: Exchange) -> dict[str, Any]:
        """Template variables of all plugins; later wins."""
        return self._merged("template_vars", exchange)

    def render_prompt(
        self,
        exchange: Exchange,
        messages: Sequence[Mapping[str, Any]],
        variables: Mapping[str, Any],
    ) -> str | None:
        """The first prompt text that a plugin writes."""
        for call in self.calls("render_prompt"):
            with self._contained(call, exchange):
                text: str | None = call(exchange=exchange, messages=messages, variables=variables)
                if text is not None:
                    return text
        return None

    def begin_answer(self, exchange: Exchange, prompt: str) -> str:
        """What the plugins begin the answer with, one after the other."""
        begun = ""
        for call in self.calls("begin_answer"):
            with self._contained(call, exchange):
                begun += call(exchange=exchange, prompt=prompt + begun) or ""
        return begun

    async def shape_job(self, exchange: Exchange, job: Job) -> None:
        """Lets every plugin edit the job."""
        await self._each("shape_job", exchange, job=job)

    def stages(self, exchange: Exchange, job: Job) -> list[Stage]:
        """The stages of one choice, in plugin order, each guarded."""
        stages: list[Stage] = []
        for call in self.calls("stage"):
            with self._contained(call, exchange):
                stage = call(exchange=exchange, job=job)
                if stage is not None:
                    stages.append(GuardedStage(stage, self, call, exchange))
        return stages

    def opening_fields(self, exchange: Exchange) -> dict[str, Any]:
        """Fields for the first chunk or the body."""
        return self._merged("opening_fields", exchange)

    def response_headers(self, exchange: Exchange) -> dict[str, str]:
        """Headers of the answer."""
        return self._merged("response_headers", exchange)

    def closing_fields(self, exchange: Exchange) -> dict[str, Any]:
        """Fields for the last chunk or the body."""
        return self._merged("closing_fields", exchange)

    async def settle(self, exchange: Exchange, error: BaseException | None) -> None:
        """Tells every plugin that the request is over; never raises."""
        for call in self.calls("settle"):
            try:
                with self._timed(call):
                    await call(exchange=exchange, error=error)
            except Exception:
                log.exception("plugin %s failed in settle", call.plugin.name)

    # Services

    async def create_constraint(self, spec: ConstraintSpec, server: Server) -> Grammar | None:
        """The first compiled constraint. A failing plugin fails the request."""
        for call in self.calls("create_constraint"):
            with self._contained(call, None, closed=True):
                grammar: Grammar | None = await call(spec=spec, server=server)
                if grammar is not None:
                    return grammar
        return None

    async def create_embedder(self, name: str, server: Server) -> Embedder | None:
        """The first embedder of that name."""
        for call in self.calls("create_embedder"):
            with self._contained(call, None):
                embedder: Embedder | None = await call(name=name, server=server)
                if embedder is not None:
                    return embedder
        return None

    async def parse_document(
        self, data: bytes, name: str, media_type: str | None, server: Server
    ) -> Document | None:
        """The file as the first plugin reads it that can."""
        for call in self.calls("parse_document"):
            with self._contained(call, None):
                document: Document | None = await call(
                    data=data, name=name, media_type=media_type, server=server
                )
                if document is not None:
                    return document
        return None

    def answers(self, hook: str, **arguments: Any) -> list[Any]:
        """What every plugin answers to a hook that one of them added, without the Nones."""
        return [answer for _, answer in self._answers(hook, **arguments)]

    # How they are called

    def _answers(self, hook: str, **arguments: Any) -> Iterator[tuple[Plugin, Any]]:
        """What each plugin answers to a plain hook, without the Nones."""
        for call in self.calls(hook):
            answer = None
            with self._contained(call, arguments.get("exchange")):
                answer = call(**arguments)
            if answer is not None:
                yield call.plugin, answer

    def _merged(self, hook: str, exchange: Exchange) -> dict[str, Any]:
        merged: dict[str, Any] = {}
        for _, answer in self._answers(hook, exchange=exchange):
            merged.update(answer)
        return merged

    async def _each(self, hook: str, exchange: Exchange, **arguments: Any) -> None:
        for call in self.calls(hook):
            with self._contained(call, exchange):
                await call(exchange=exchange, **arguments)

    @contextmanager
    def _contained(
        self, call: Call, exchange: Exchange | None, *, closed: bool = False
    ) -> Iterator[None]:
        """Keeps a failure to its plugin; ``closed`` makes every failure the request's."""
        try:
            with self._timed(call):
                yield
        except ApiError:
            raise
        except Exception as error:
            self.report(call, exchange, error, closed=closed)

    @contextmanager
    def _timed(self, call: Call) -> Iterator[None]:
        begin, failed = time.perf_counter(), False
        try:
            yield
        except Exception as error:
            failed = not isinstance(error, ApiError)
            call.plugin.failures += failed
            raise
        finally:
            self.watch(call.plugin.name, call.hook, time.perf_counter() - begin, failed)

    def report(
        self, call: Call, exchange: Exchange | None, error: Exception, *, closed: bool = False
    ) -> None:
        """Logs a failure; raises PluginFailed where the request cannot go on without it."""
        plugin = call.plugin
        log.error("plugin %s failed in %s", plugin.name, call.hook, exc_info=error)
        asked = exchange is not None and exchange.asks_for(plugin.request_fields)
        if asked or closed or plugin.essential:
            raise PluginFailed(
                f"The plugin '{plugin.name}' failed in '{call.hook}', and this request needs it. "
                "The server's log has the details."
            ) from error


class GuardedStage:
    """A plugin's stage; when it breaks, the answer goes on without it where that is honest."""

    def __init__(self, stage: Stage, plugins: Plugins, call: Call, exchange: Exchange) -> None:
        self._stage: Stage | None = stage
        self._plugins = plugins
        self._call = call
        self._exchange = exchange

    def feed(self, delta: Delta) -> Iterable[Delta]:
        """The stage's deltas, or the delta itself once the stage is broken."""
        if self._stage is None:
            return [delta]
        try:
            return list(self._stage.feed(delta))
        except Exception as error:
            self._break(error)
            return [delta]

    def finish(self) -> Iterable[Delta]:
        """What the stage held back."""
        if self._stage is None:
            return []
        try:
            return list(self._stage.finish())
        except Exception as error:
            self._break(error)
            return []

    def _break(self, error: Exception) -> None:
        if isinstance(error, ApiError):
            raise error
        self._stage = None
        self._call.plugin.failures += 1
        self._plugins.watch(self._call.plugin.name, "stage", 0.0, True)
        self._plugins.report(self._call, self._exchange, error)


def empty_manager() -> pluggy.PluginManager:
    """A manager that knows the hooks and has no plugins."""
    manager = pluggy.PluginManager("hookline")
    manager.add_hookspecs(Hooks)
    return manager
