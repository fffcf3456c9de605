"""What a request costs beyond generation: the server around an engine that costs nothing.

Starts a server with the scripted engine in a process of its own, sends requests over one kept
connection, and divides the server's processor time by their number. Also with plugins that do
nothing, to see what hooks cost.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import httpx
import psutil
from rich.console import Console

from hookline import Caller, EngineStats, Exchange, Job, hookimpl
from hookline.api.schema import ChatRequest
from hookline.cli.serve import address, listen, loop_factory, run
from hookline.config import Settings
from hookline.discovery import load_plugins
from hookline.engines.scripted import ScriptedEngine, say
from hookline.kernel import Kernel
from hookline.metrics import Metrics
from hookline.plugins import Plugins

TOKENS = 64
BODY = {"messages": [{"role": "user", "content": "How do bridges carry their load?"}]}


class Brings:
    """A plugin with the scripted engine."""

    @hookimpl
    def create_engine(self) -> ScriptedEngine:
        """An engine that says the same word over and over."""
        return ScriptedEngine(say(*["word "] * TOKENS))


class Idle:
    """A plugin that has the hooks of a request and does nothing in them."""

    @hookimpl
    async def admit(self, exchange: Exchange) -> None: ...

    @hookimpl
    async def transform(self, exchange: Exchange) -> None: ...

    @hookimpl
    def template_vars(self, exchange: Exchange) -> Mapping[str, Any] | None: ...

    @hookimpl
    async def shape_job(self, exchange: Exchange, job: Job) -> None: ...

    @hookimpl
    def stage(self, exchange: Exchange) -> None: ...

    @hookimpl
    def closing_fields(self, exchange: Exchange) -> Mapping[str, Any] | None: ...

    @hookimpl
    async def settle(self, exchange: Exchange) -> None: ...


@dataclass(frozen=True)
class Cost:
    """Milliseconds a request: the server's processor time, and what the client waited."""

    plugins: int
    stream: bool
    max_tokens: int
    cpu_ms: float
    latency_ms: float


def serve(plugins: int) -> None:
    """The server's process: prints its address, runs until it is told to stop."""
    with tempfile.TemporaryDirectory() as folder:
        settings = Settings(
            data_dir=Path(folder), plugins=[], server={"port": 0}, log_level="error"
        )
        idle = {f"idle-{number}": Idle() for number in range(plugins)}
        kernel = Kernel(settings, plugins={**idle, "engine": Brings()})
        listener = listen(settings)
        print(address(listener), flush=True)
        with asyncio.Runner(loop_factory=loop_factory()) as runner:
            runner.run(run(kernel, listener, Console(stderr=True, quiet=True)))


@asynccontextmanager
async def served(plugins: int) -> AsyncIterator[tuple[httpx.AsyncClient, psutil.Process]]:
    """A server in a process of its own: a client for it, and the process."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, __file__, "--serve", str(plugins), stdout=subprocess.PIPE
    )
    assert process.stdout is not None
    url = (await process.stdout.readline()).decode().strip()
    try:
        async with httpx.AsyncClient(base_url=url, timeout=30) as client:
            await _ready(client)
            yield client, psutil.Process(process.pid)
    finally:
        process.terminate()
        await process.wait()


async def _ready(client: httpx.AsyncClient) -> None:
    for _ in range(500):
        try:
            if (await client.get("/health")).status_code == 200:
                return
        except httpx.ConnectError:
            pass
        await asyncio.sleep(0.02)
    raise TimeoutError("the server did not come up")


async def measure(requests: int, plugins: int, stream: bool, max_tokens: int) -> Cost:
    """The cost of one kind of request."""
    body = {**BODY, "stream": stream, "max_tokens": max_tokens}
    async with served(plugins) as (client, process):
        for _ in range(50):
            (await client.post("/v1/chat/completions", json=body)).raise_for_status()
        before, began = sum(process.cpu_times()[:2]), time.perf_counter()
        for _ in range(requests):
            (await client.post("/v1/chat/completions", json=body)).raise_for_status()
        waited = time.perf_counter() - began
        used = sum(process.cpu_times()[:2]) - before
    each = 1000 / requests
    return Cost(plugins, stream, max_tokens, round(used * each, 3), round(waited * each, 3))


async def hooks_cost(plugins: int, requests: int = 2000) -> float:
    """Microseconds of processor time that the hooks of one request take, without a server around
    them: on a busy machine the only figure that tells six plugins from none."""
    loaded = load_plugins(
        Settings(plugins=[]), extra={f"idle-{number}": Idle() for number in range(plugins)}
    )
    loaded.isolation.watch = Metrics(EngineStats).hook
    before = 0.0
    for number in range(requests + requests // 10):
        if number == requests // 10:  # the first ones only warm up
            before = time.process_time()
        await _hooks(
            loaded, Exchange("id", 0, "model", ChatRequest.model_construct(messages=[]), Caller())
        )
    return (time.process_time() - before) / requests * 1e6


async def _hooks(plugins: Plugins, exchange: Exchange) -> None:
    job = Job([1])
    await plugins.admit(exchange)
    await plugins.transform(exchange)
    plugins.template_vars(exchange)
    await plugins.shape_job(exchange, job)
    plugins.stages(exchange, job)
    plugins.opening_fields(exchange)
    plugins.response_headers(exchange)
    plugins.closing_fields(exchange)
    await plugins.settle(exchange, None)


async def main(requests: int, as_json: bool) -> None:
    """Measures every kind and prints a table."""
    kinds = [(n, stream, t) for n in (0, 6) for stream in (False, True) for t in (1, TOKENS)]
    costs = [await measure(requests, *kind) for kind in kinds]
    if as_json:
        print(json.dumps([asdict(cost) for cost in costs], indent=2))
        return
    print(f"{'plugins':>8} {'stream':>7} {'tokens':>7} {'cpu ms':>8} {'latency ms':>11}")
    for c in costs:
        print(f"{c.plugins:8} {c.stream!s:>7} {c.max_tokens:7} {c.cpu_ms:8} {c.latency_ms:11}")
    none, six = await hooks_cost(0), await hooks_cost(6)
    print(f"all hooks of a request: {none:.0f} µs without plugins, {six:.0f} µs with six")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=500, help="requests of each kind")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--serve", type=int, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.serve is not None:
        serve(asked.serve)
    else:
        asyncio.run(main(asked.requests, asked.json))
