"""Measures OpenAI-compatible servers side by side: `python -m bench.over_http --help`.

Every round asks each server the same questions, one server after the other, so that whatever else
the machine does in the meantime meets them all. The order turns round with every round.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import click
import httpx
from bench.client import Answer, Messages, Round, ask, probe, prompt, together
from bench.servers import KNOWN, Shape, Target, serving
from rich.console import Console
from rich.table import Column, Table

from hookline.config import DEFAULT_MODEL
from hookline.models import find_model


@dataclass(frozen=True)
class Plan:
    """What is measured: how many clients, which prompts, how often, how long the answers are."""

    clients: Sequence[int]
    prompts: Sequence[str]
    rounds: int
    max_tokens: int
    pause: float


@dataclass
class Measured:
    """All that was measured of one server: values by what they are of."""

    values: dict[str, list[float]] = field(default_factory=dict)

    def add(self, what: str, *values: float) -> None:
        """Notes values; a short answer that arrives in one piece has no rate."""
        if values:
            self.values.setdefault(what, []).extend(values)


@dataclass
class Numbers:
    """Which question comes next: none is asked twice, so that nothing is cached."""

    last: int = 0

    def questions(self, kind: str, count: int) -> list[Messages]:
        """Conversations with one question each."""
        begin, self.last = self.last + 1, self.last + count
        numbers = range(begin, self.last + 1)
        return [[{"role": "user", "content": prompt(kind, number)}] for number in numbers]


@dataclass
class Bench:
    """A plan at work on some servers."""

    plan: Plan
    targets: Sequence[Target]
    numbers: Numbers = field(default_factory=Numbers)

    def __post_init__(self) -> None:
        self.measured = {target.name: Measured() for target in self.targets}

    async def run(self) -> dict[str, Measured]:
        """Runs the plan. Values are in seconds and tokens a second."""
        for turn in range(self.plan.rounds):
            order = self.targets if turn % 2 == 0 else list(reversed(self.targets))
            for kind in self.plan.prompts:
                for count in self.plan.clients:
                    await self._together(order, kind, count)
                await self._second_turn(order, kind)
            await self._health(order)
        return self.measured

    async def _together(self, order: Sequence[Target], kind: str, count: int) -> None:
        what = f"{kind}, {count} clients"
        questions = self.numbers.questions(kind, count)
        for target in order:
            note(target, what)
            asked = await together(target.url, questions, self.plan.max_tokens)
            add_round(self.measured[target.name], what, asked)

    async def _second_turn(self, order: Sequence[Target], kind: str) -> None:
        what = f"{kind}, second turn"
        (question,) = self.numbers.questions(kind, 1)
        for target in order:
            note(target, what)
            second = await second_turn(target, question, self.plan)
            self.measured[target.name].add(f"{what}: first token", second.first)

    async def _health(self, order: Sequence[Target]) -> None:
        what = "a GET beside 4 streams"
        questions = self.numbers.questions("short", 4)
        for target in order:
            note(target, what)
            seconds = await health(target, questions, self.plan.max_tokens)
            self.measured[target.name].add(what, *seconds)


def add_round(measured: Measured, what: str, asked: Round) -> None:
    """Notes what the clients of one round saw."""
    measured.add(f"{what}: first token", *(answer.first for answer in asked.answers))
    measured.add(f"{what}: each", *(answer.rate for answer in asked.answers if answer.rate))
    measured.add(f"{what}: together", asked.total_rate)


async def second_turn(target: Target, question: Messages, plan: Plan) -> Answer:
    """The answer to a question after an answer, which the server may have kept."""
    async with httpx.AsyncClient(timeout=600) as client:
        first = await ask(client, target.url, question, plan.max_tokens)
        await asyncio.sleep(plan.pause)
        follows = [
            {"role": "assistant", "content": first.text},
            {"role": "user", "content": "What happens next?"},
        ]
        return await ask(client, target.url, [*question, *follows], plan.max_tokens)


async def health(target: Target, questions: Sequence[Messages], max_tokens: int) -> list[float]:
    """Seconds that a small GET takes while these questions are answered."""
    async with httpx.AsyncClient() as client:
        known = (await client.get(f"{target.root}/health")).status_code != 404
    url = f"{target.root}/health" if known else f"{target.url}/models"
    stop = asyncio.Event()
    probing = asyncio.create_task(probe(url, stop))
    try:
        await together(target.url, questions, max_tokens)
    finally:
        stop.set()
    return await probing


def note(target: Target, what: str) -> None:
    """Says on stderr what is being done."""
    print(f"{target.name}: {what}", file=sys.stderr, flush=True)


# Report


def percentile(values: Iterable[float], share: float) -> float:
    """The smallest value that at least this share of the values does not exceed."""
    ordered = sorted(values)
    return ordered[max(0, -(-len(ordered) * int(share * 100) // 100) - 1)]


def figures(measured: Measured) -> dict[str, float]:
    """The figures of one server: milliseconds for times, tokens a second for rates."""
    result: dict[str, float] = {}
    for what, values in measured.values.items():
        if what.endswith((": each", ": together")):
            result[f"{what}, tokens/s"] = percentile(values, 0.5)
        else:
            result[f"{what}, p50 ms"] = percentile(values, 0.5) * 1000
            result[f"{what}, p95 ms"] = percentile(values, 0.95) * 1000
    return result


def report(results: dict[str, dict[str, float]]) -> Table:
    """All figures, and their ratio to those of the first server."""
    first, *others = results
    table = Table(
        Column("measured", no_wrap=True), *results, *(f"{first} / {other}" for other in others)
    )
    for what, value in results[first].items():
        cells = [f"{result.get(what, float('nan')):.1f}" for result in results.values()]
        ratios = [f"{value / results[other][what]:.2f}" for other in others]
        table.add_row(what, *cells, *ratios)
    return table


# Command


def listed(ctx: click.Context, param: click.Parameter, text: str) -> list[int]:
    """Reads numbers parted by commas."""
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise click.BadParameter(f"'{text}' is no list of numbers like 1,4") from None


@click.command()
@click.option("--serve", "served", multiple=True, type=click.Choice(list(KNOWN)), help="Start it.")
@click.option("--url", "urls", multiple=True, metavar="NAME=URL", help="One that runs already.")
@click.option("--model", default=DEFAULT_MODEL, help="For --serve: a model source.")
@click.option("--context", default=8192, help="For --serve: tokens a request.")
@click.option("--parallel", default=4, help="For --serve: requests answered at once.")
@click.option("--threads", default=os.cpu_count() or 1, help="For --serve: CPU threads.")
@click.option("--llama-server", default="llama-server", help="Its command, perhaps with flags.")
@click.option("--clients", default="1,4,8,32", callback=listed, help="How many ask at once.")
@click.option(
    "--prompts",
    type=click.Choice(["short", "long", "short,long"]),
    default="short,long",
    help="Long ones have about 1,500 tokens.",
)
@click.option("--rounds", default=3, type=click.IntRange(1), help="How often everything is done.")
@click.option("--max-tokens", default=64, type=click.IntRange(2), help="Longest answer.")
@click.option("--pause", default=1.0, help="Seconds between two turns of a conversation.")
@click.option("--limit", default=1800.0, help="Seconds after which it gives up.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def main(
    served: Sequence[str],
    urls: Sequence[str],
    model: str,
    context: int,
    parallel: int,
    threads: int,
    llama_server: str,
    clients: Sequence[int],
    prompts: str,
    rounds: int,
    max_tokens: int,
    pause: float,
    limit: float,
    as_json: bool,
) -> None:
    """Measures servers side by side; ratios are to the first one."""
    plan = Plan(clients, prompts.split(","), rounds, max_tokens, pause)
    with ExitStack() as stack:
        path = find_model(model, Path.cwd()).path
        shape = Shape(path, context, parallel, threads, llama_server)
        targets = [stack.enter_context(serving(name, shape)) for name in served]
        targets += [
            Target(name, url.rstrip("/")) for name, _, url in (u.partition("=") for u in urls)
        ]
        if not targets:
            raise click.UsageError("Name a server: --serve hookline, or --url NAME=URL.")
        measured = asyncio.run(asyncio.wait_for(Bench(plan, targets).run(), limit))
    results = {name: figures(values) for name, values in measured.items()}
    if as_json:
        print(json.dumps(results, indent=2))
    else:
        Console().print(report(results))


if __name__ == "__main__":
    main()
