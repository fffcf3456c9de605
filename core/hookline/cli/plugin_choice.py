"""``hookline plugins enable`` and ``disable``: edit the configuration file, comments kept."""

from __future__ import annotations

from pathlib import Path

import click

from hookline.choice import BUILT_IN, OFF, unknown, wanted
from hookline.cli import loaded_settings
from hookline.cli.config_edit import rewrite, with_entries, without_table
from hookline.cli.output import json_option, print_json
from hookline.config import LoadedSettings, Settings
from hookline.config.sources import FILE_NAME
from hookline.errors import ConfigError, PluginError
from hookline.plugin_sources import PluginSource, all_sources


@click.command()
@click.argument("name")
@json_option
@click.pass_context
def enable(ctx: click.Context, name: str, as_json: bool) -> None:
    """Switches the plugin NAME on in the configuration file."""
    _choose(loaded_settings(ctx), name, True, as_json)


@click.command()
@click.argument("name")
@json_option
@click.pass_context
def disable(ctx: click.Context, name: str, as_json: bool) -> None:
    """Switches the plugin NAME off in the configuration file."""
    _choose(loaded_settings(ctx), name, False, as_json)


def _choose(loaded: LoadedSettings, name: str, on: bool, as_json: bool) -> None:
    settings, sources = loaded.settings, all_sources(loaded.settings)
    entries, file = settings.plugins, loaded.file or Path(FILE_NAME)
    gone = name not in sources
    if gone and (on or name not in (*named(entries), *settings.plugin)):
        raise PluginError(unknown(name, sources))
    _refuse_variable(loaded)
    chosen = with_plugin(entries, name, sources) if on else without(entries, name, sources)
    table = gone and _is_table_of(loaded, name)
    if changed := chosen is not None and chosen != entries:
        rewrite(file, lambda text: with_entries(text, chosen or []))
    if table:
        rewrite(file, lambda text: without_table(text, name, file))
    if as_json:
        told = {"plugin": name, "on": on, "changed": changed or table, "file": str(file)}
        print_json({**told, "table_is_comment": table})
    else:
        _say(name, on, file, changed=changed, table=table)


def _say(name: str, on: bool, file: Path, *, changed: bool, table: bool) -> None:
    state = "on" if on else "off"
    if changed:
        click.echo(f"{name} is {state} in {file}. A server that runs must be restarted.")
    if table:
        click.echo(f"[plugin.{name}] in {file} is a comment now: no such plugin is installed.")
    if not (changed or table):
        click.echo(f"{name} is {state} already.")


def _refuse_variable(loaded: LoadedSettings) -> None:
    origin = loaded.origins.of(("plugins",))
    if origin.kind == "environment":
        raise ConfigError(f"{origin.name} says which plugins are on, and wins over the file.")


def with_plugin(
    entries: list[str] | None, name: str, sources: dict[str, PluginSource]
) -> list[str] | None:
    """The list in the configuration with a plugin on; None where it is on already."""
    if _is_on(entries, name, sources):
        return None
    if entries is None:
        return [BUILT_IN, name]
    chosen = [entry for entry in entries if entry != OFF + name]
    return chosen if chosen and _is_on(chosen, name, sources) else [*chosen, name]


def without(
    entries: list[str] | None, name: str, sources: dict[str, PluginSource]
) -> list[str] | None:
    """The list in the configuration with a plugin off; None where it is off already."""
    if entries is not None and name not in sources:
        return [entry for entry in entries if entry not in (name, OFF + name)]
    if entries is not None and name in entries:
        entries = [entry for entry in entries if entry != name]
    elif not _is_on(entries, name, sources):
        return None
    if _is_on(entries, name, sources):
        return [*(entries if entries is not None else [BUILT_IN]), OFF + name]
    return entries


def _is_on(entries: list[str] | None, name: str, sources: dict[str, PluginSource]) -> bool:
    """Whether a list of the configuration means a plugin; other names in it do not matter."""
    known = None if entries is None else [e for e in entries if e.removeprefix(OFF) in sources]
    stars = [] if entries is None else [e for e in entries if e == BUILT_IN]
    listed = None if known is None else [*stars, *known]
    return name in wanted(Settings.model_construct(plugins=listed, plugin={}), sources)


def named(entries: list[str] | None) -> list[str]:
    """The plugins that the list in the configuration names, on or off."""
    return [entry.removeprefix(OFF) for entry in entries or ()]


def _is_table_of(loaded: LoadedSettings, name: str) -> bool:
    """Whether the file has the settings of a plugin. Raises ConfigError for the environment's."""
    if name not in loaded.settings.plugin:
        return False
    origin = loaded.origins.around(("plugin", name))
    if origin.kind == "environment":
        raise ConfigError(f"{origin.name} sets the plugin '{name}'; unset it.")
    return True
