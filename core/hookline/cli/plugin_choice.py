"""``hookline plugins enable`` and ``disable``: edit the configuration file, comments kept."""

from __future__ import annotations

from pathlib import Path

import click
import tomlkit
from tomlkit.exceptions import TOMLKitError
from tomlkit.items import Array

from hookline.choice import BUILT_IN, OFF, unknown, wanted
from hookline.cli import loaded_settings
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
    entries = settings.plugins
    if name not in sources and (on or name not in (entries or ())):
        raise PluginError(unknown(name, sources))
    _refuse_variable(loaded)
    chosen = with_plugin(entries, name, sources) if on else without(entries, name, sources)
    changed = chosen is not None and chosen != entries
    file = loaded.file or Path(FILE_NAME)
    if changed:
        _write(file, chosen or [])
    if as_json:
        print_json({"plugin": name, "on": on, "changed": changed, "file": str(file)})
    elif changed:
        state = "on" if on else "off"
        click.echo(f"{name} is {state} in {file}. A server that runs must be restarted.")
    else:
        click.echo(f"{name} is {'on' if on else 'off'} already.")


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
    if entries is not None and name in entries:
        entries = [entry for entry in entries if entry != name]
    elif not _is_on(entries, name, sources):
        return None
    if name in sources and _is_on(entries, name, sources):
        return [*(entries if entries is not None else [BUILT_IN]), OFF + name]
    return entries


def _is_on(entries: list[str] | None, name: str, sources: dict[str, PluginSource]) -> bool:
    """Whether a list of the configuration means a plugin; other names in it do not matter."""
    known = None if entries is None else [e for e in entries if e.removeprefix(OFF) in sources]
    stars = [] if entries is None else [e for e in entries if e == BUILT_IN]
    listed = None if known is None else [*stars, *known]
    return name in wanted(Settings.model_construct(plugins=listed, plugin={}), sources)


def _write(file: Path, entries: list[str]) -> None:
    """Sets ``plugins`` in a file, which is made where there is none."""
    try:
        document = tomlkit.parse(file.read_text(encoding="utf-8-sig") if file.exists() else "")
        if isinstance(array := document.get("plugins"), Array):
            _edit(array, entries)
        else:
            document["plugins"] = entries
        text = tomlkit.dumps(document)
        staged = file.with_name(f".{file.name}.new")
        staged.write_text(text, encoding="utf-8")
        if file.exists():
            staged.chmod(file.stat().st_mode)
        staged.replace(file.resolve())
    except OSError as error:
        raise ConfigError(f"{file} cannot be written: {error.strerror}") from None
    except TOMLKitError as error:
        raise ConfigError(f"{file}: {error}") from None


def _edit(array: Array, entries: list[str]) -> None:
    """Changes an array item by item, so that its lines and comments stay."""
    for index in reversed(range(len(array))):
        if array[index] not in entries:
            del array[index]
    for entry in entries:
        if entry not in array:
            array.append(entry)
