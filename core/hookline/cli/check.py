"""``hookline check``: tries everything once, and says line by line what works."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import AsyncIterator, Iterator
from dataclasses import asdict, dataclass
from typing import Literal

import click
from rich.console import Console
from rich.text import Text

from hookline.app import app_of
from hookline.cli import loaded_settings
from hookline.cli.output import SILENT, json_option, log_as_warnings, print_json
from hookline.config import LoadedSettings
from hookline.errors import HooklineError
from hookline.kernel import Kernel
from hookline.messages import Message
from hookline.plugin import Plugin

QUESTION = "Say hello in one short sentence."
ANSWER_TOKENS = 24


@dataclass(frozen=True, slots=True)
class Finding:
    """What was found out about one part of the server."""

    part: str
    state: Literal["ok", "off", "failed"]
    detail: str


@click.command()
@json_option
@click.pass_context
def check(ctx: click.Context, as_json: bool) -> None:
    """Loads everything, lets the model answer once, and says what works.

    Exits with 1 where something does not.
    """
    with log_as_warnings(SILENT):
        findings = asyncio.run(_collect(ctx, as_json))
    ok = all(finding.state != "failed" for finding in findings)
    if as_json:
        print_json({"ok": ok, "parts": [asdict(finding) for finding in findings]})
    if not ok:
        ctx.exit(1)


async def _collect(ctx: click.Context, as_json: bool) -> list[Finding]:
    """All findings, printed as they come unless JSON is wanted."""
    findings: list[Finding] = []
    async for finding in _findings(ctx):
        findings.append(finding)
        if not as_json:
            _print(finding)
    return findings


def _print(finding: Finding) -> None:
    if not sys.stdout.isatty():
        click.echo("\t".join((finding.state, finding.part, finding.detail)))
        return
    style = {"ok": "green", "off": "dim", "failed": "red"}[finding.state]
    line = Text.assemble((f"{finding.state:<7}", style), f"{finding.part}: {finding.detail}")
    Console().print(line)


async def _findings(ctx: click.Context) -> AsyncIterator[Finding]:
    """Tries the parts in the order in which they need each other."""
    part = "configuration"
    try:
        loaded = loaded_settings(ctx)
        yield _configuration(loaded)
        part = "plugins"
        kernel = Kernel(loaded.settings)
        app_of(kernel)  # for the plugins' routes
        part = "start"
        async with kernel.running():
            for finding in _plugins(kernel):
                yield finding
            part = "model"
            begin = time.perf_counter()
            await kernel.loaded
            yield _model(kernel, time.perf_counter() - begin)
            part = "answer"
            yield await _answer(kernel)
    except HooklineError as error:
        for line in str(error).splitlines():
            yield Finding(part, "failed", line)
    except Exception as error:
        if ctx.find_root().params["debug"]:
            raise
        yield Finding(part, "failed", f"{type(error).__name__}: {error}")


def _configuration(loaded: LoadedSettings) -> Finding:
    return Finding("configuration", "ok", str(loaded.file or "no file, defaults"))


def _plugins(kernel: Kernel) -> Iterator[Finding]:
    for plugin in kernel.plugins.found.values():
        if not plugin.core:
            yield _plugin(plugin)


def _plugin(plugin: Plugin) -> Finding:
    state: Literal["ok", "off", "failed"] = "ok" if plugin.state == "active" else plugin.state
    return Finding(f"plugin {plugin.name}", state, plugin.reason or f"version {plugin.version}")


def _model(kernel: Kernel, seconds: float) -> Finding:
    card = kernel.engine.card
    detail = f"{card.id} on {card.engine}, {card.context} tokens, loaded in {seconds:.1f} s"
    return Finding("model", "ok", detail)


async def _answer(kernel: Kernel) -> Finding:
    begin = time.perf_counter()
    text = await kernel.ask([Message(role="user", content=QUESTION)], max_tokens=ANSWER_TOKENS)
    seconds = time.perf_counter() - begin
    if not text.strip():
        return Finding("answer", "failed", f"the model said nothing to: {QUESTION}")
    return Finding("answer", "ok", f"{' '.join(text.split())!r} in {seconds:.1f} s")
