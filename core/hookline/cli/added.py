"""The commands that plugins add: all of a plugin's or none."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping

import click

from hookline.cli.output import log_as_warnings, warn
from hookline.config import Settings
from hookline.discovery import load_plugins
from hookline.errors import HooklineError, PluginError
from hookline.faults import described
from hookline.plugins import Plugins


def plugin_commands(
    read: Callable[[], Settings], taken: Collection[str]
) -> Mapping[str, click.Command]:
    """What plugins add, by name. Whatever goes wrong is a warning: the other commands must work.

    ``read`` reads the settings; ``taken`` are the names of Hookline's own commands.
    """
    group = click.Group()
    try:
        with log_as_warnings():
            problems = add_commands(load_plugins(read()), group, taken)
    except HooklineError as error:
        problems = {}
        warn(f"no commands of plugins: {error}")
    for name, problem in problems.items():
        warn(f"plugin {name}: {problem}")
    return group.commands


def add_commands(plugins: Plugins, cli: click.Group, taken: Iterable[str] = ()) -> dict[str, str]:
    """Adds the commands of all plugins to ``cli``; ``taken`` are names that none may have.

    Gives what is wrong, in one line, with those of each plugin that has none added.
    """
    problems: dict[str, str] = {}
    owners = dict.fromkeys([*taken, *cli.commands], "Hookline")
    for plugin, add in plugins.commands():
        trial = click.Group(commands=dict(cli.commands))
        try:
            add(trial)
            new = [name for name, it in trial.commands.items() if cli.commands.get(name) is not it]
            _check(new, owners)
        except (Exception, SystemExit) as error:
            problems[plugin.name] = f"its commands cannot be used: {described(error)}"
        else:
            cli.commands.update(trial.commands)
            owners |= dict.fromkeys(new, f"the plugin '{plugin.name}'")
    return problems


def _check(names: Iterable[str], owners: Mapping[str, str]) -> None:
    if taken := next((name for name in names if name in owners), None):
        raise PluginError(f"'{taken}' is there already, from {owners[taken]}")
