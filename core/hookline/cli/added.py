"""The commands that plugins add."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

import click

from hookline.cli.output import log_as_warnings, warn
from hookline.config import Settings
from hookline.discovery import load_plugins
from hookline.errors import HooklineError


def plugin_commands(
    read: Callable[[], Settings], taken: Collection[str]
) -> Mapping[str, click.Command]:
    """What plugins add, by name. Whatever goes wrong is a warning: the other commands must work.

    ``read`` reads the settings; ``taken`` are the names of Hookline's own commands.
    """
    group = click.Group()
    try:
        with log_as_warnings():
            load_plugins(read()).commands(group, taken)
    except HooklineError as error:
        warn(f"no commands of plugins: {error}")
    return group.commands
