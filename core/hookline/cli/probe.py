"""Loads and starts plugins in a process of its own, and writes down how it went.

``python -m hookline.cli.probe REPORT CONFIG PLUGIN …``: a process, so that a plugin that hangs or
takes its process down harms nobody.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import click

from hookline.app import app_of
from hookline.cli import COMMANDS
from hookline.cli.added import add_commands
from hookline.config import Settings, load_settings
from hookline.errors import HooklineError
from hookline.kernel import Kernel
from hookline.plugin import Plugin


def main(arguments: Sequence[str]) -> None:
    """Probes, and writes the report as JSON."""
    report, config, *names = arguments
    logging.disable()
    settings = load_settings(Path(config) if config else None, {}, os.environ).settings
    settings.plugins = names
    # the others are not here, so they cannot refuse the start
    settings.essential = [name for name in settings.essential if name in names]
    Path(report).write_text(json.dumps(asyncio.run(probe(settings))), encoding="utf-8")


async def probe(settings: Settings) -> Mapping[str, Any]:
    """What becomes of the plugins when a server begins, all but the model."""
    try:
        kernel = Kernel(settings)
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(kernel.store)
            await kernel.enter_plugins(stack)
            app_of(kernel)  # for the plugins' routes
            problems = add_commands(kernel.plugins, click.Group(), COMMANDS)
            found = [p for p in kernel.plugins.found.values() if not p.core]
            plugins = [_told(plugin, problems.get(plugin.name)) for plugin in found]
            return {"plugins": plugins, "refusal": None}
    except HooklineError as error:
        return {"plugins": [], "refusal": str(error)}


def _told(plugin: Plugin, problem: str | None) -> Mapping[str, Any]:
    """The plugin, failed where its commands or one of its hooks failed."""
    told = plugin.summary()
    if plugin.failures and not problem:
        problem = f"failed: {plugin.last_failure}"
    if plugin.state == "active" and problem:
        return {**told, "state": "failed", "reason": problem}
    return told


if __name__ == "__main__":
    main(sys.argv[1:])
