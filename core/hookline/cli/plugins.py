"""``hookline plugins``: which plugins there are, whether they work, and in which order.

Nothing of a plugin is run here but by ``check``: the commands work where every plugin is broken.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

import click

from hookline.api.schema import ChatRequest
from hookline.choice import unknown
from hookline.cli import loaded_settings
from hookline.cli.output import SILENT, json_option, log_as_warnings, note, print_json, print_table
from hookline.cli.plugin_check import check
from hookline.cli.plugin_choice import disable, enable
from hookline.cli.plugin_doctor import doctor
from hookline.cli.plugin_new import new
from hookline.cli.plugin_report import details, lines, report
from hookline.cli.running import Running, asked_server, url_option
from hookline.config import Settings
from hookline.config.check import did_you_mean, suggest
from hookline.errors import PluginError
from hookline.survey import Survey, survey


@click.group()
def plugins() -> None:
    """Plugins: which there are, whether they work, in which order; new ones."""


for command in (enable, disable, check, doctor, new):
    plugins.add_command(command)


@plugins.command("list")
@url_option
@json_option
@click.pass_context
def list_plugins(ctx: click.Context, url: str | None, as_json: bool) -> None:
    """Lists all plugins, those in use first, with their state.

    States are those of the running server. Where none runs, a plugin is "on" that is in use and
    whose source nothing speaks against; "hookline plugins check" loads them to be sure.
    """
    settings = loaded_settings(ctx).settings
    running = asked_server(settings, url)
    found = read_all(settings)
    reports = [report(read, running) for read in found.plugins.values()]
    if as_json:
        print_json(reports)
    elif reports:
        print_table(
            ("plugin", "state", "version", "reason", "fields", "hooks", "settings"),
            [_row(about) for about in reports],
        )
        _say_whose_states(settings, running)
    else:
        note("No plugin is installed.")
    if found.refusal:
        raise found.refusal


def _row(about: Mapping[str, Any]) -> tuple[object, ...]:
    fields, hooks, settings = (about[column] for column in ("fields", "hooks", "settings"))
    first = (about["name"], about["state"], about["version"], about["reason"], ", ".join(fields))
    if sys.stdout.isatty():  # columns of many names leave no room for the others; `info` has them
        return *first, len(hooks), len(settings)
    return *first, ", ".join(hooks), ", ".join(settings)


def _say_whose_states(settings: Settings, running: Running | None) -> None:
    if running is not None and not running.answers:
        note(
            f"A server is there at {running.url}, but does not answer; plugins were read, not run."
        )
    elif running is not None:
        note(f"States are those of the server at {running.url}.")
    else:
        note(f"No server runs on port {settings.server.port}; plugins were read, not run.")


@plugins.command()
@click.argument("name")
@url_option
@json_option
@click.pass_context
def info(ctx: click.Context, name: str, url: str | None, as_json: bool) -> None:
    """Shows everything about the plugin NAME, also where it is off or broken."""
    settings = loaded_settings(ctx).settings
    found = read_all(settings)
    if name not in found.plugins:
        raise PluginError(unknown(name, found.plugins))
    table = settings.plugin.get(name, {})
    running = asked_server(settings, url)
    about = details(found.plugins[name], running, table)
    if as_json:
        print_json(about)
    else:
        print_table(("", ""), list(lines(about)))
        _say_whose_states(settings, running)
    if found.refusal:
        raise found.refusal


@plugins.command()
@click.argument("hook")
@json_option
@click.pass_context
def order(ctx: click.Context, hook: str, as_json: bool) -> None:
    """Shows in which order the plugins are called for HOOK, and why."""
    found = read_all(loaded_settings(ctx).settings)
    if hook not in (hooks := found.hooks()):
        raise PluginError(f"There is no hook '{hook}'" + did_you_mean(suggest(hook, hooks)))
    resolved = found.order(hook)
    rows = [
        (name, "; ".join([_place(found, name), *resolved.notes(name)]))
        for name in resolved.names
        if hook in found.plugins[name].plugin.hooks
    ]
    if as_json:
        print_json([{"plugin": name, "why": why} for name, why in rows])
    elif rows:
        print_table(("", "plugin", "why"), [(n, *row) for n, row in enumerate(rows, 1)])
    else:
        note(f"No plugin in use has the hook '{hook}'.")
    if found.refusal:
        raise found.refusal


def read_all(settings: Settings) -> Survey:
    """All plugins, read and not run."""
    with log_as_warnings(SILENT):
        return survey(settings, ChatRequest.model_fields)


def _place(found: Survey, name: str) -> str:
    return "named in 'plugins'" if found.plugins[name].plugin.written else "stands for '*'"
