"""Many requests of mixed kinds, a third of them broken off, and what grew: `python -m bench.soak`.

Exits with 1 where memory, threads or file handles of the server grew beyond their bounds, where
something is still at work when nobody asks, or where an answer had an unexpected status.
"""

from __future__ import annotations

import asyncio
import os
import random
import re
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click
import httpx
import psutil
from bench.client import prompt
from bench.servers import Shape, Target, serving
from rich.console import Console
from rich.table import Table

from hookline.config import DEFAULT_MODEL
from hookline.models import find_model

SETTLE_SECONDS = 20
"""How long the server may take to be at rest after the last request."""

WATCHED = ("requests_in_flight", "running", "queued", "kv_used_tokens", "engine_restarts")


@dataclass(frozen=True)
class Request:
    """A body for a path, the status it should get, and whether the client leaves early."""

    kind: str
    path: str
    body: bytes | dict[str, Any]
    status: int = 200
    leaves: bool = False


def requests(count: int, seed: int) -> Iterator[Request]:
    """Mixed requests; the same for the same seed."""
    chance = random.Random(seed)  # noqa: S311 - nothing here is a secret
    kinds = (chat, streamed, two_choices, long, completion, broken_json, wrong_type)
    for number in range(count):
        made = kinds[number % len(kinds)](number)
        yield made if made.status != 200 or chance.random() > 0.47 else leaving(made)


def chat(number: int) -> Request:
    """A plain answer."""
    messages = [{"role": "user", "content": prompt("short", number)}]
    return Request("plain", "chat/completions", {"messages": messages, "max_tokens": 12})


def streamed(number: int) -> Request:
    """A streamed answer."""
    messages = [{"role": "user", "content": prompt("short", number)}]
    body = {"messages": messages, "max_tokens": 12, "stream": True}
    return Request("streamed", "chat/completions", body)


def two_choices(number: int) -> Request:
    """Two sampled choices, streamed."""
    messages = [{"role": "user", "content": prompt("short", number)}]
    body = {"messages": messages, "max_tokens": 8, "n": 2, "temperature": 0.8, "stream": True}
    return Request("two choices", "chat/completions", body)


def long(number: int) -> Request:
    """A prompt of a few hundred tokens."""
    messages = [{"role": "user", "content": prompt("long", number, words=300)}]
    body = {"messages": messages, "max_tokens": 4, "stream": True}
    return Request("long prompt", "chat/completions", body)


def completion(number: int) -> Request:
    """A raw prompt with log probabilities."""
    body = {"prompt": f"{number}. The river", "max_tokens": 8, "logprobs": 3, "stop": ["."]}
    return Request("completion", "completions", body)


def broken_json(number: int) -> Request:
    """A body that is no JSON."""
    return Request("broken JSON", "chat/completions", b'{"messages": [' + str(number).encode(), 400)


def wrong_type(number: int) -> Request:
    """A field of the wrong type."""
    return Request("wrong type", "chat/completions", {"messages": str(number), "n": "two"}, 400)


def leaving(request: Request) -> Request:
    """The same request from a client that does not stay."""
    kind = f"{request.kind}, broken off"
    return Request(kind, request.path, request.body, request.status, leaves=True)


@dataclass(frozen=True)
class Sight:
    """The server at one moment: memory in MB, threads, file handles, and its own gauges."""

    memory: float
    threads: int
    handles: int
    gauges: dict[str, float]

    @classmethod
    async def of(cls, target: Target, client: httpx.AsyncClient) -> Sight:
        """Looks at the server's process and at its `/metrics`."""
        text = (await client.get(f"{target.root}/metrics")).text
        found = {
            name: re.search(rf"^hookline_{name} (\S+)", text, re.MULTILINE) for name in WATCHED
        }
        gauges = {name: float(match[1]) for name, match in found.items() if match}
        process = psutil.Process(target.pid)
        with process.oneshot():
            memory = process.memory_info().rss / 1e6
            return cls(memory, process.num_threads(), process.num_fds(), gauges)

    @property
    def at_rest(self) -> bool:
        """Whether nothing is at work or waiting."""
        return not any(self.gauges[name] for name in ("requests_in_flight", "running", "queued"))


@dataclass
class Soak:
    """Sends requests, so many at once, and counts what came of each kind."""

    target: Target
    client: httpx.AsyncClient
    chance: random.Random
    outcomes: Counter[tuple[str, str]] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)

    async def send(self, stream: Iterator[Request], workers: int) -> None:
        """Sends all of them."""

        async def work() -> None:
            for request in stream:
                await self._send(request)
                if self.outcomes.total() % 50 == 0:
                    print(f"{self.outcomes.total()} requests", file=sys.stderr, flush=True)

        await asyncio.gather(*(work() for _ in range(workers)))

    async def _send(self, request: Request) -> None:
        if request.leaves:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._answer(request), self.chance.uniform(0.01, 0.6))
                self.outcomes[request.kind, "was quicker"] += 1
                return
            self.outcomes[request.kind, "left"] += 1
        else:
            self.outcomes[request.kind, str(await self._answer(request))] += 1

    async def _answer(self, request: Request) -> int:
        """The status of the answer, once it is all read."""
        body = request.body
        arguments: dict[str, Any] = {"content": body} if isinstance(body, bytes) else {"json": body}
        headers = {"Content-Type": "application/json"}
        url = f"{self.target.url}/{request.path}"
        response = await self.client.post(url, headers=headers, **arguments)
        broken = request.status == 200 and '{"error":' in response.text
        if broken or response.status_code != request.status:
            self.wrong.append(f"{request.kind}: {response.status_code} {response.text[:200]}")
        return response.status_code

    async def at_rest(self) -> Sight:
        """The server once nobody asks any more, or when that took too long."""
        deadline = time.monotonic() + SETTLE_SECONDS
        while True:
            sight = await Sight.of(self.target, self.client)
            if sight.at_rest or time.monotonic() > deadline:
                return sight
            await asyncio.sleep(0.2)


@dataclass(frozen=True)
class Bounds:
    """How much may grow between the two looks; a pool's threads and idle connections come late."""

    memory: float
    threads: int = 6
    handles: int = 10


async def soak(
    target: Target, count: int, warm_up: int, workers: int, seed: int
) -> tuple[Sight, Sight, Soak]:
    """Runs it: the server after the warm-up, after everything, and what came of the requests."""
    async with httpx.AsyncClient(timeout=600, limits=httpx.Limits(max_connections=None)) as client:
        run = Soak(target, client, random.Random(seed))  # noqa: S311
        stream = requests(warm_up + count, seed)
        await run.send(iter([next(stream) for _ in range(warm_up)]), workers)
        start = await run.at_rest()
        await run.send(stream, workers)
        return start, await run.at_rest(), run


def grown(start: Sight, end: Sight, bounds: Bounds) -> list[str]:
    """What grew beyond its bound, or did not come to rest."""
    changes = {
        "memory (MB)": (end.memory - start.memory, bounds.memory),
        "threads": (end.threads - start.threads, bounds.threads),
        "file handles": (end.handles - start.handles, bounds.handles),
        "engine restarts": (end.gauges["engine_restarts"], 0),
    }
    problems = [f"{what} grew by {by:.0f}" for what, (by, most) in changes.items() if by > most]
    return problems if end.at_rest else [*problems, f"not at rest: {end.gauges}"]


def report(start: Sight, end: Sight, run: Soak) -> Iterator[Table]:
    """Start and end, and the outcomes."""
    looks = Table("server", "after the warm-up", "at the end")
    looks.add_row("memory, MB", f"{start.memory:.0f}", f"{end.memory:.0f}")
    looks.add_row("threads", str(start.threads), str(end.threads))
    looks.add_row("file handles", str(start.handles), str(end.handles))
    for name in WATCHED:
        looks.add_row(name, f"{start.gauges[name]:.0f}", f"{end.gauges[name]:.0f}")
    yield looks
    outcomes = Table("request", "outcome", "times")
    for (kind, outcome), times in sorted(run.outcomes.items()):
        outcomes.add_row(kind, outcome, str(times))
    yield outcomes


@click.command()
@click.option("--requests", "count", default=1000, help="How many, after the warm-up.")
@click.option("--warm-up", default=100, help="How many before the first look.")
@click.option("--workers", default=8, help="How many at once.")
@click.option("--model", default=DEFAULT_MODEL, help="A model source.")
@click.option("--context", default=2048, help="Tokens a request.")
@click.option("--threads", default=os.cpu_count() or 1, help="CPU threads of the server.")
@click.option("--memory-mb", default=40.0, help="How much memory may grow.")
@click.option("--seed", default=1, help="For the mix.")
def main(
    count: int,
    warm_up: int,
    workers: int,
    model: str,
    context: int,
    threads: int,
    memory_mb: float,
    seed: int,
) -> None:
    """Watches a server of its own under mixed requests."""
    shape = Shape(find_model(model, Path.cwd()).path, context, 4, threads)
    with serving("hookline", shape) as target:
        start, end, run = asyncio.run(soak(target, count, warm_up, workers, seed))
    console = Console()
    for table in report(start, end, run):
        console.print(table)
    problems = [*grown(start, end, Bounds(memory_mb)), *run.wrong[:10]]
    for problem in problems:
        console.print(problem, style="red", markup=False)
    sys.exit(bool(problems))


if __name__ == "__main__":
    main()
