"""What the tests share: a server around the scripted engine, in process or on a real port."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import httpx
import pytest
from hypercorn.asyncio import serve
from hypercorn.config import Config
from quart import Quart

from hookline import hookimpl
from hookline.app import create_app
from hookline.config import ModelSettings, Settings
from hookline.engines.scripted import Script, ScriptedEngine
from hookline.kernel import Kernel
from hookline.server import Clock


def pytest_configure() -> None:
    """Each process of a parallel run has a core of its own: the threads of llama.cpp wait for each
    other in loops, so two engines that both take all cores hold each other up."""
    worker = os.environ.get("PYTEST_XDIST_WORKER")
    if worker and hasattr(os, "sched_setaffinity"):
        cores = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(0, {cores[int(worker.removeprefix("gw")) % len(cores)]})


class Scripted:
    """A plugin whose engine says what the test tells it."""

    def __init__(self, script: Script | None, **options: Any) -> None:
        self.engine = ScriptedEngine(script, **options)

    @hookimpl
    def create_engine(self, model: ModelSettings) -> ScriptedEngine:
        return self.engine


@dataclass
class Running:
    """A server at work, with a client for it."""

    app: Quart
    client: httpx.AsyncClient
    engine: ScriptedEngine
    url: str = ""

    @property
    def kernel(self) -> Kernel:
        kernel: Kernel = self.app.extensions["hookline"]
        return kernel

    async def chat(self, content: Any = "Hello there", **fields: Any) -> httpx.Response:
        """A chat request with one user message, or with ``messages`` of its own."""
        body = {"messages": [{"role": "user", "content": content}], **fields}
        return await self.client.post("/v1/chat/completions", json=body)


@dataclass
class Server:
    """What a test says about its server before it starts."""

    script: Script | None = None
    plugins: Mapping[str, object] = field(default_factory=dict)
    clock: Clock | None = None
    settings: dict[str, Any] = field(default_factory=dict)
    engine: dict[str, Any] = field(default_factory=dict)


Start = Callable[..., AbstractAsyncContextManager[Running]]


def _build(server: Server, data_dir: Path) -> tuple[Quart, ScriptedEngine]:
    scripted = Scripted(server.script, **server.engine)
    settings = Settings(**{"data_dir": data_dir, "plugins": [], **server.settings})
    plugins = {**server.plugins, "scripted-engine": scripted}
    return create_app(settings, plugins=plugins, clock=server.clock), scripted.engine


@pytest.fixture
def in_process(tmp_path: Path) -> Start:
    """Starts a server without a port: quick, but its answers arrive whole."""

    @asynccontextmanager
    async def start(**about: Any) -> AsyncIterator[Running]:
        app, engine = _build(Server(**about), tmp_path / "data")
        transport = httpx.ASGITransport(cast(Any, app))
        async with (
            app.test_app(),
            httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client,
        ):
            await app.extensions["hookline"].loaded
            yield Running(app, client, engine)

    return start


@pytest.fixture
def on_port(tmp_path: Path) -> Start:
    """Starts a server on a real port of loopback."""

    @asynccontextmanager
    async def start(**about: Any) -> AsyncIterator[Running]:
        app, engine = _build(Server(**about), tmp_path / "data")
        async with served(app) as url, httpx.AsyncClient(base_url=url, timeout=30) as client:
            await app.extensions["hookline"].loaded
            yield Running(app, client, engine, url)

    return start


@asynccontextmanager
async def served(app: Quart) -> AsyncIterator[str]:
    """Runs an application under Hypercorn in this loop."""
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    config = Config()
    config.bind = [f"fd://{listener.detach()}"]
    config.graceful_timeout = 0.5
    config.errorlog = None
    stop = asyncio.Event()
    serving = asyncio.create_task(serve(app, config, shutdown_trigger=stop.wait))
    try:
        await _answers(url)
        yield url
    finally:
        stop.set()
        await serving


async def _answers(url: str) -> None:
    async with httpx.AsyncClient() as client:
        for _ in range(200):
            try:
                await client.get(f"{url}/health")
            except httpx.ConnectError:
                await asyncio.sleep(0.01)
            else:
                return
    raise TimeoutError("the test server did not come up")
