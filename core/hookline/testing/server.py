"""A whole server for a test: real HTTP on a port of loopback, real plugins, a scripted model."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import inspect
import re
import socket
import threading
import time
from collections.abc import Callable, Coroutine, Iterable, Mapping
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, Self, TypeVar

import httpx
from hypercorn.asyncio import serve
from hypercorn.config import Config
from quart import Quart

from hookline.app import app_of
from hookline.config import ModelSettings, Settings
from hookline.discovery import GROUP
from hookline.engine import Job
from hookline.engines.scripted import Line, Script, ScriptedEngine, say
from hookline.hookspecs import hookimpl
from hookline.kernel import Kernel
from hookline.testing.answers import Answer, Refused, StreamedAnswer
from hookline.testing.clock import TestClock
from hookline.testing.failures import Failures
from hookline.testing.shapes import check_error

T = TypeVar("T")
PATIENCE = 30.0
"""Seconds that anything may take before a test is given up."""


class ScriptedModel:
    """The plugin whose engine says what the test wants; it remembers what it was asked."""

    def __init__(self) -> None:
        self.engine: ScriptedEngine | None = None
        self.script: Script | None = None
        self.prompts: list[str] = []
        self.jobs: list[Job] = []
        self.options: dict[str, Any] = {}

    @hookimpl
    def create_engine(self, model: ModelSettings) -> ScriptedEngine | None:
        """Answers for every model, unless the test asks for another plugin's engine."""
        if model.engine not in ("auto", "scripted"):
            return None
        self.engine = ScriptedEngine(self._play, **self.options)
        return self.engine

    def _play(self, prompt: str, job: Job) -> Iterable[Line]:
        self.prompts.append(prompt)
        self.jobs.append(job)
        return (self.script or say("Hello", ", world", "."))(prompt, job)


class LocalServer:
    """A server that a test sets up, asks, and forgets. It starts with the first thing asked of it.

    It runs in a thread of its own, so tests are plain functions, and any client can be used on
    ``url``. Only the plugins that the test names are on. A plugin that cannot be used, or fails in
    a hook, which a real server bears, fails the test, unless ``tolerant`` is set.
    """

    def __init__(self, data_dir: Path, clock: TestClock | None = None) -> None:
        self.clock = clock or TestClock()
        self.model = ScriptedModel()
        self.failures = Failures()
        self.tolerant = False
        self.url = ""
        self._settings: dict[str, Any] = {"data_dir": data_dir, "plugins": []}
        self._objects: dict[str, object] = {}
        self._running: _Running | None = None
        self._starting = threading.Lock()

    # Before it starts

    def use(self, plugin: str | type | object, name: str | None = None, **settings: Any) -> str:
        """Switches a plugin on, by its installed name, as a class or as an instance; ``settings``
        are its table of the configuration. Gives the plugin's name."""
        self._not_yet("use")
        name = plugin if isinstance(plugin, str) else name or plugin_name(plugin)
        if isinstance(plugin, str) or _is_installed(name, plugin):
            self._settings["plugins"] = [*self._settings["plugins"], name]
        else:
            self._objects[name] = plugin
        if settings:
            self._settings.setdefault("plugin", {})[name] = settings
        return name

    def configure(self, **settings: Any) -> None:
        """Further settings, as tables: ``configure(auth={"require_api_key": True})``."""
        self._not_yet("configure")
        self._settings |= settings

    def engine(self, **options: Any) -> None:
        """How the scripted engine is made: ``context``, ``parallel``, ``step_seconds``…"""
        self._not_yet("engine")
        self.model.options |= options

    # What the model says

    def says(self, *lines: Line) -> None:
        """What the model answers from now on, token by token. A `Pause` makes it wait, a `Break`
        breaks the engine, an exception fails that answer."""
        self.model.script = say(*lines)

    def plays(self, script: Script) -> None:
        """Like `says`, for answers that depend on the prompt."""
        self.model.script = script

    @property
    def prompts(self) -> list[str]:
        """The prompts that the model was given, as text, oldest first."""
        return self.model.prompts

    @property
    def jobs(self) -> list[Job]:
        """What the engine was asked, beside the prompt: constraint, sampling, stops."""
        return self.model.jobs

    # Asking it

    def chat(self, content: Any = "Hello", **fields: Any) -> Answer:
        """Asks, and gives the answer, checked. ``content`` is the text of one user message, or the
        whole list of messages. Raises Refused, WrongShape, and what failed in a plugin."""
        response = self.client.post("/v1/chat/completions", json=_body(content, fields))
        self.raise_failures()
        body = _json(response)
        return Answer(body, response.headers)

    def stream(
        self, content: Any = "Hello", *, leave_after: int | None = None, **fields: Any
    ) -> StreamedAnswer:
        """Asks for a stream and reads it to its end, or goes away after so many chunks. Checked
        and raising like `chat`."""
        answer = StreamedAnswer()
        body = _body(content, {**fields, "stream": True})
        with self.client.stream("POST", "/v1/chat/completions", json=body) as response:
            if response.status_code != 200:
                response.read()
                _json(response)
            answer.headers = response.headers
            for line in response.iter_lines():
                answer.take(line)
                if leave_after is not None and len(answer.chunks) >= leave_after:
                    answer.left = True
                    break
        self.raise_failures()
        if not answer.left:
            answer.check()
        return answer

    @property
    def client(self) -> httpx.Client:
        """A client for every other route. Starts the server."""
        return self.start()._started.client

    def raise_failures(self) -> None:
        """Raises what failed in a plugin since it was last asked, unless ``tolerant``."""
        failed = self.failures.take()
        if failed and not self.tolerant:
            raise AssertionError(f"{failed[0].what}: {failed[0].error!r}") from failed[0].error

    def wait_until_idle(self) -> None:
        """Waits until no request is at work. Raises AssertionError when one never ends."""
        kernel = self.kernel
        self.wait_until(
            lambda: (
                not kernel.in_flight and not kernel.stats().running and not kernel.stats().queued
            )
        )

    def wait_until(self, holds: Callable[[], bool]) -> None:
        """Waits for something to become true. Raises AssertionError when it does not."""
        deadline = time.monotonic() + PATIENCE
        while not holds():
            if time.monotonic() > deadline:
                raise AssertionError(f"still not so after {PATIENCE:.0f} s: {holds}")
            time.sleep(0.005)

    # The inside

    @property
    def kernel(self) -> Kernel:
        """The kernel at work. Starts the server."""
        return self.start()._started.kernel

    def plugin(self, name: str) -> Any:
        """A plugin's instance. Raises AssertionError with the reason where it could not start."""
        plugin = self.kernel.plugins.found[name]
        if plugin.state != "active":
            raise AssertionError(f"the plugin '{name}' is {plugin.state}: {plugin.reason}")
        return plugin.instance

    @property
    def routes(self) -> list[tuple[str, str]]:
        """Method and path of every route, ``x`` standing for what is open in a path."""
        rules = self.start()._started.app.url_map.iter_rules()
        return sorted(
            (method, re.sub("<[^>]*>", "x", rule.rule))
            for rule in rules
            for method in (rule.methods or set()) - {"HEAD", "OPTIONS"}
        )

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Runs something in the server's event loop and gives its result."""
        return self.start()._started.run(coroutine)

    # Its life

    def start(self) -> Self:
        """Starts it where it is not running yet. Raises StartError where it cannot, and
        AssertionError for a plugin that cannot be used, unless ``tolerant``."""
        with self._starting:
            if self._running is None:
                self._running = self._begin()
                self._raise_unusable()
        return self

    def _raise_unusable(self) -> None:
        for plugin in self._started.kernel.plugins.found.values():
            if plugin.state == "failed" and not self.tolerant:
                raise AssertionError(f"the plugin '{plugin.name}' is failed: {plugin.reason}")

    def _begin(self) -> _Running:
        settings = Settings(**self._settings)
        objects = {**self._objects, "scripted-model": self.model}
        self.failures.listen()
        running = _Running(lambda: Kernel(settings, plugins=objects, clock=self.clock))
        running.start()
        self.url = running.url
        return running

    def stop(self) -> None:
        """Stops it, with its plugins. It can be started again, with the same data."""
        if self._running is not None:
            self._running.stop()
            self._running = None
        self.failures.forget()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *error: object) -> None:
        self.stop()

    @property
    def _started(self) -> _Running:
        assert self._running is not None
        return self._running

    def _not_yet(self, what: str) -> None:
        if self._running is not None:
            raise RuntimeError(f"{what}() comes before the server starts; it runs already.")


class _Running:
    """The thread, its event loop, and the server in it."""

    def __init__(self, build: Callable[[], Kernel]) -> None:
        self._build = build
        self._ready: concurrent.futures.Future[None] = concurrent.futures.Future()
        self._thread = threading.Thread(target=self._main, name="hookline-test-server")
        self._loop: asyncio.AbstractEventLoop
        self._stop: asyncio.Event
        self.kernel: Kernel
        self.app: Quart
        self.client: httpx.Client
        self.url = ""

    def start(self) -> None:
        self._thread.start()
        try:
            self._ready.result(PATIENCE)
        except BaseException:
            self._thread.join()
            raise
        self.client = httpx.Client(base_url=self.url, timeout=PATIENCE, trust_env=False)

    def stop(self) -> None:
        self.client.close()
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(PATIENCE)

    def _main(self) -> None:
        try:
            asyncio.run(self._serve())
        except BaseException as error:
            if not self._ready.done():
                self._ready.set_exception(error)

    async def _serve(self) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        self.kernel = self._build()
        async with self.kernel.running():
            await self.kernel.loaded
            listener = socket.create_server(("127.0.0.1", 0))
            self.url = f"http://127.0.0.1:{listener.getsockname()[1]}"
            config = _quiet(listener.detach())
            self.app = app_of(self.kernel)
            self._ready.set_result(None)
            await serve(self.app, config, shutdown_trigger=self._stop.wait)


def _quiet(listener: int) -> Config:
    config = Config()
    config.bind = [f"fd://{listener}"]
    config.graceful_timeout = 0.5
    config.keep_alive_timeout = PATIENCE  # a client that uses a connection as it closes fails
    config.errorlog = None
    return config


def plugin_name(plugin: object) -> str:
    """The name under which a plugin is announced, or its class's in lower case."""
    kind = plugin if inspect.isclass(plugin) else type(plugin)
    value = f"{kind.__module__}:{kind.__qualname__}"
    for entry in entry_points(group=GROUP):
        with contextlib.suppress(Exception):
            if entry.value == value or entry.load() is kind:
                return entry.name
    return kind.__name__.lower()


def _is_installed(name: str, plugin: object) -> bool:
    found = entry_points(group=GROUP, name=name)
    return inspect.isclass(plugin) and any(entry.load() is plugin for entry in found)


def _body(content: Any, fields: Mapping[str, Any]) -> dict[str, Any]:
    is_conversation = isinstance(content, list) and all("role" in part for part in content)
    messages = content if is_conversation else [{"role": "user", "content": content}]
    return {"messages": messages, **fields}


def _json(response: httpx.Response) -> Any:
    """The body. Raises Refused for an error, which must look like OpenAI's."""
    body = response.json()
    if response.status_code != 200:
        check_error(body)
        raise Refused(response.status_code, body["error"])
    return body
