"""One running process: settings, plugins, store and engine, from start to end."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import secrets
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from hookline.api.schema import ChatRequest, SamplingFields
from hookline.auth import Auth, network_rule
from hookline.budget import enter
from hookline.config import ModelSettings, Settings, resolve_model
from hookline.config.check import did_you_mean, suggest
from hookline.constraints import ConstraintSpec
from hookline.discovery import load_plugins, request_model
from hookline.documents import Document
from hookline.engine import Engine, EngineStats, Grammar, Job, Sampling
from hookline.engines import OWN_SETTINGS, BuiltinEngines
from hookline.errors import (
    InvalidApiKey,
    InvalidRequest,
    NoModel,
    OtherModelConfigured,
    PluginError,
    ShuttingDown,
    StartError,
)
from hookline.exchange import Caller, Exchange
from hookline.faults import described
from hookline.messages import Message
from hookline.metrics import Metrics
from hookline.plugin import Plugin
from hookline.plugins import Plugins
from hookline.prompt import ChatTemplate, Prompt, fit, template_variables
from hookline.quota import Quota, system_clock
from hookline.server import Clock, Embedder
from hookline.store import Store
from hookline.watchdog import watching

log = logging.getLogger(__name__)

PLUGIN_CALLER = Caller("hookline", "hookline")
"""Who asks when a plugin asks the model."""


class Kernel:
    """Everything of one server but HTTP. Fulfils `hookline.server.Server`."""

    def __init__(
        self,
        settings: Settings,
        *,
        plugins: Mapping[str, object] | None = None,
        clock: Clock | None = None,
    ) -> None:
        network_rule(settings)
        self.settings = settings
        self.clock = clock or system_clock
        self.store = Store(settings.data_dir)
        self.auth = Auth(settings, self.store)
        self.template = ChatTemplate(_template(settings), self.clock)
        self.plugins = self._with_plugins(plugins or {})
        self.chat_request: type[ChatRequest] = request_model(
            ChatRequest, self.plugins.request_fields()
        )
        self.metrics = Metrics(self.stats)
        self.plugins.isolation.watch = self.metrics.hook
        self.metrics.watch_plugins([p for p in self.plugins.found.values() if not p.core])
        self.model_id, self.model = resolve_model(settings)
        self.started = int(time.time())
        self.progress = 0.0
        self.stopping = False
        self.in_flight = 0
        self._idle = asyncio.Event()
        self._engine: Engine | None = None
        self._embedders: dict[str, Embedder] = {}
        self._making_embedder: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._reported: set[str] = set()
        self.loaded: asyncio.Future[None]

    def _with_plugins(self, extra: Mapping[str, object]) -> Plugins:
        core = {
            "hookline.auth": self.auth,
            "hookline.quota": Quota(self.settings, self.store, self.clock),
            "hookline.prompt": self.template,
            "hookline.engines": BuiltinEngines(self.settings),
        }
        return load_plugins(
            self.settings, core=core, extra=extra, reserved=ChatRequest.model_fields
        )

    # The server's public face

    @property
    def data_dir(self) -> Path:
        """Where files that must survive live."""
        return self.settings.data_dir

    @property
    def engine(self) -> Engine:
        """The loaded engine. Raises NoModel while there is none."""
        if not self._is_loaded() or self._engine is None or self._engine.state == "failed":
            raise NoModel("The model is not loaded yet. Try again in a moment.", retry_after=2)
        return self._engine

    @property
    def chat_template(self) -> str:
        """The source of the chat template in use."""
        return self.template.source

    def answers(self, hook: str, **arguments: Any) -> list[Any]:
        """Calls a hook that a plugin added; every answer that is not None."""
        return self.plugins.answers(hook, **arguments)

    async def constraint(self, spec: ConstraintSpec) -> Grammar:
        """Compiles a constraint through whichever plugin can."""
        grammar = await self.plugins.create_constraint(spec, self)
        if grammar is None:
            raise InvalidRequest(
                f"No plugin can enforce a constraint of kind '{spec.kind}'. "
                "Enable the plugin 'structured'.",
                param=spec.param,
            )
        return grammar

    async def embedder(self, name: str | None = None) -> Embedder | None:
        """An embedder by name, or the default one; made once."""
        key = name or ""
        async with self._making_embedder[key]:
            if key not in self._embedders:
                embedder = await self.plugins.create_embedder(key, self)
                if embedder is None:
                    return None
                self._embedders[key] = embedder
        return self._embedders[key]

    async def parse_document(
        self, data: bytes, name: str, media_type: str | None = None
    ) -> Document | None:
        """Reads a file through whichever plugin can."""
        return await self.plugins.parse_document(data, name, media_type, self)

    async def ask(
        self,
        messages: Sequence[Message],
        *,
        grammar: Grammar | None = None,
        max_tokens: int = 256,
        temperature: float = 0.0,
        exchange: Exchange | None = None,
    ) -> str:
        """Asks the model for a plugin: same queue and cancel, no allowance, no usage."""
        request = ChatRequest.model_construct(messages=list(messages))
        asking = self.exchange(request, PLUGIN_CALLER, list(messages))
        if exchange is not None:  # the template is to get from its plugins what it gets there
            asking.state = dict(exchange.state)
        prompt = await self.prompt(asking, {})
        job = Job(
            prompt.ids,
            max_tokens=max_tokens,
            sampling=Sampling(temperature=temperature),
            grammar=grammar,
            images=prompt.images,
        )
        async with aclosing(self.engine.submit(job)) as pieces:
            tokens = [token async for piece in pieces for token in piece.tokens]
        return "".join(token.text for token in tokens if not token.special)

    # For the routes

    def exchange(
        self,
        request: BaseModel,
        caller: Caller,
        messages: list[Message] | None = None,
        *,
        prefix: str = "chatcmpl",
    ) -> Exchange:
        """A new exchange. Raises NoModel."""
        card = self.engine.card
        return Exchange(
            id=f"{prefix}-{secrets.token_hex(12)}",
            created=int(time.time()),
            model=card.id,
            request=request,
            caller=caller,
            messages=messages or [],
            max_ctx=card.context,
        )

    async def prompt(self, exchange: Exchange, from_request: Mapping[str, Any]) -> Prompt:
        """The exchange's messages as ids that fit, computed in a thread."""
        engine = self.engine
        variables = template_variables(
            engine.card, self.plugins.template_vars(exchange), from_request
        )

        def render(messages: Sequence[Mapping[str, Any]]) -> str:
            text = self.plugins.render_prompt(exchange, messages, variables)
            if text is None:
                raise RuntimeError("no plugin wrote a prompt")
            return text + self.plugins.begin_answer(exchange, text)

        return await asyncio.to_thread(fit, engine, exchange.messages, render)

    @property
    def ready(self) -> bool:
        """Whether a model answers."""
        return self._engine_state() == "ready"

    async def authenticate(self, headers: Mapping[str, str], address: str) -> Caller:
        """Who is asking. Raises InvalidApiKey when nobody vouches."""
        caller = await self.plugins.authenticate(headers, address)
        if caller is None:
            raise InvalidApiKey("This server does not know who is asking. Send an API key.")
        return caller

    def sampling(self, asked: SamplingFields) -> Sampling:
        """How to sample; ``always_greedy`` overrides what was asked and checked."""
        sampling = asked.sampling(self.engine.card.vocabulary)
        return Sampling() if self.model.always_greedy else sampling

    def refuse_other_model(self, name: str | None) -> None:
        """Raises OtherModelConfigured for a configured model that is not the loaded one."""
        if name in self.settings.models and name != self.model_id:
            raise OtherModelConfigured(
                f"The model '{name}' is configured but not loaded; '{self.model_id}' is. "
                f"Restart with --model {name}, or leave 'model' out.",
                param="model",
            )

    @contextlib.contextmanager
    def at_work(self) -> Iterator[None]:
        """Counts a generation request; none begins while the server shuts down."""
        if self.stopping:
            raise ShuttingDown("The server is shutting down.", retry_after=5)
        self.in_flight += 1
        self.metrics.in_flight.inc()
        try:
            yield
        finally:
            self.in_flight -= 1
            self._idle.set()
            self.metrics.in_flight.dec()

    def report_ignored(self, names: Sequence[str]) -> None:
        """Logs, once each, that request fields are ignored."""
        for name in names:
            if name not in self._reported and len(self._reported) < 100:
                self._reported.add(name)
                meant = did_you_mean(suggest(name, self.chat_request.model_fields))
                log.warning(
                    "the request field %.40r is not known here and is ignored%s", name, meant
                )

    def stats(self) -> EngineStats:
        """How busy the engine is; zeros without one."""
        return self._engine.stats() if self._engine is not None else EngineStats()

    def health(self) -> dict[str, Any]:
        """Whether the server can answer, and what works."""
        state = "stopping" if self.stopping else self._engine_state()
        name = self.engine.card.id if state == "ready" else self.model_id
        body: dict[str, Any] = {"status": state, "model": name}
        if state == "loading":
            body["progress"] = round(self.progress, 3)
        if self.loaded.done() and (error := self.loaded.exception()) is not None:
            body["error"] = str(error)
        stats = self.stats()
        body |= {"running": stats.running, "queued": stats.queued, "restarts": stats.restarts}
        body["plugins"] = [p.summary() for p in self.plugins.found.values() if not p.core]
        return body

    def _is_loaded(self) -> bool:
        return self.loaded.done() and self.loaded.exception() is None

    def _engine_state(self) -> str:
        if not self.loaded.done():
            return "loading"
        return self._engine.state if self._is_loaded() and self._engine else "failed"

    # From start to end

    @asynccontextmanager
    async def running(self) -> AsyncIterator[Kernel]:
        """Opens the store, the plugins and, in the background, the engine. Raises StartError."""
        self.loaded = asyncio.get_running_loop().create_future()
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(self.store)
            stack.enter_context(watching(self.settings.isolation.blocking_seconds))
            await self.enter_plugins(stack)
            loading = asyncio.create_task(self._load())
            stack.push_async_callback(self._unload, loading)
            yield self

    async def drain(self) -> None:
        """Takes nothing new, and waits until what runs is finished."""
        self.stopping = True
        while self.in_flight:
            self._idle.clear()
            await self._idle.wait()

    async def enter_plugins(self, stack: AsyncExitStack) -> None:
        """Starts the plugins, to stop with the stack. Raises PluginError for essential ones."""
        seconds = self.settings.isolation.start_seconds
        for plugin, lifespan in list(self.plugins.lifespan(self)):
            try:
                await enter(stack, plugin, lifespan(), seconds)
            except (Exception, SystemExit) as error:
                self._start_failed(plugin, error)

    def _start_failed(self, plugin: Plugin, error: BaseException) -> None:
        reason = f"cannot start: {described(error)}"
        if plugin.essential or plugin.core:
            raise PluginError(f"The essential plugin '{plugin.name}' {reason}") from error
        log.debug("plugin %s", plugin.name, exc_info=error)
        self.plugins.fail(plugin, reason)

    async def _load(self) -> None:
        try:
            engine = await asyncio.to_thread(self.plugins.create_engine, self.model)
            if engine is None:
                raise StartError(_no_engine(self.model))
            self._engine = engine
            await engine.load(self._set_progress)
            self.template.use(engine.card)
            log.info("model %s is loaded", engine.card.id)
        except Exception as error:
            log.debug("loading failed", exc_info=True)
            self.loaded.set_exception(error)
            self.loaded.exception()  # marks it as seen: /health tells, and serve raises it
        else:
            self.loaded.set_result(None)

    def _set_progress(self, share: float) -> None:
        self.progress = share

    async def stop_engine(self) -> None:
        """Ends every answer as ``cancelled`` and frees the model."""
        if self._engine is not None:
            await self._engine.close()

    async def _unload(self, loading: asyncio.Task[None]) -> None:
        loading.cancel()
        await asyncio.wait([loading])
        await self.stop_engine()


def _no_engine(model: ModelSettings) -> str:
    meant = did_you_mean(suggest(model.engine, OWN_SETTINGS))
    return (
        f"No engine '{model.engine}' for the model '{model.source}'{meant or '.'} [model] engine "
        f"is auto, {', '.join(OWN_SETTINGS)}, or one of a plugin ('hookline plugins list')."
    )


def _template(settings: Settings) -> str | None:
    path = resolve_model(settings)[1].chat_template
    if path is None:
        return None
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise StartError(f"[model] chat_template: cannot read {path}: {error}.") from error
