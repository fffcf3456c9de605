"""``hookline config``: writes a configuration file, and shows what is in effect."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import click
from pydantic import BaseModel

from hookline.cli import loaded_settings
from hookline.cli.output import SILENT, json_option, log_as_warnings, note, print_json, print_table
from hookline.config import LoadedSettings, Settings, commented_config
from hookline.config.fields import masked
from hookline.config.origins import Key, leaves
from hookline.config.sources import FILE_NAME
from hookline.discovery import load_plugins
from hookline.errors import ConfigError, HooklineError
from hookline.plugin import Plugin


@click.group()
def config() -> None:
    """The configuration: write a file, show what is in effect."""


@config.command()
@click.argument("path", type=click.Path(path_type=Path), default=FILE_NAME)
@click.option("--force", is_flag=True, help="Write over a file that is there.")
def init(path: Path, force: bool) -> None:
    """Writes a commented configuration file to PATH (default: hookline.toml)."""
    if path.is_dir():
        path /= FILE_NAME
    try:
        with path.open("w" if force else "x", encoding="utf-8") as file:
            file.write(commented_config(_plugin_models()))
    except FileExistsError:
        raise ConfigError(f"{path} is there already; --force writes over it") from None
    except OSError as error:
        raise ConfigError(f"{path} cannot be written: {error.strerror}") from None
    click.echo(f"Wrote {path}")


@config.command()
@json_option
@click.pass_context
def show(ctx: click.Context, as_json: bool) -> None:
    """Shows every setting with its value and where that came from. Secrets are covered."""
    loaded = loaded_settings(ctx)
    rows = list(effective(loaded, _plugins(loaded.settings)))
    if as_json:
        settings = {name: {"value": value, "from": origin} for name, value, origin in rows}
        print_json({"file": loaded.file, "settings": settings})
    else:
        print_table(
            ("setting", "value", "from"), [(name, _shown(value), by) for name, value, by in rows]
        )


@config.command("path")
@click.pass_context
def show_path(ctx: click.Context) -> None:
    """Prints which configuration file is in use; exits with 1 where there is none."""
    file = loaded_settings(ctx).file
    if file is None:
        note("No configuration file is in use. 'hookline config init' writes one.")
        ctx.exit(1)
    click.echo(file.absolute())


def effective(
    loaded: LoadedSettings, plugins: Mapping[str, Plugin]
) -> Iterator[tuple[str, Any, str]]:
    """Every setting: dotted name, value as it may be shown, origin."""
    for key, value in _values(loaded.settings, ()):
        if key[0] != "plugin":
            yield _row(loaded, key, value)
    for name in sorted({*loaded.settings.plugin, *plugins}):
        yield from (
            _row(loaded, key, value) for key, value in _plugin_values(loaded, plugins, name)
        )


def _row(loaded: LoadedSettings, key: Key, value: Any) -> tuple[str, Any, str]:
    return ".".join(map(str, key)), value, str(loaded.origins.of(key))


def _values(model: BaseModel, at: Key) -> Iterator[tuple[Key, Any]]:
    """All single values of a model, covered where they are secret."""
    for name, info in type(model).model_fields.items():
        value = getattr(model, name)
        tables = value if isinstance(value, Mapping) else {}
        if isinstance(value, BaseModel):
            yield from _values(value, (*at, name))
        elif tables and all(isinstance(table, BaseModel) for table in tables.values()):
            for inner, table in tables.items():
                yield from _values(table, (*at, name, inner))
        else:
            yield (*at, name), _plain(masked(name, value, info.annotation))


def _plugin_values(
    loaded: LoadedSettings, plugins: Mapping[str, Plugin], name: str
) -> Iterator[tuple[Key, Any]]:
    """A plugin's settings: all of them where the plugin works, else what was written."""
    plugin = plugins.get(name)
    if plugin and plugin.settings:
        yield from _values(plugin.settings, ("plugin", name))
    else:
        table = masked("", loaded.settings.plugin.get(name, {}))
        yield from leaves(table, ("plugin", name))


def _shown(value: Any) -> str:
    """A value for people: texts as they are, the rest as in JSON, nothing for none."""
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _plain(value: Any) -> Any:
    """A value as JSON has it."""
    if isinstance(value, BaseModel):
        return {name: _plain(item) for name, item in _values(value, ())}
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [_plain(item) for item in value]
    return value if isinstance(value, (str, int, float, bool)) or value is None else str(value)


def _plugins(settings: Settings) -> Mapping[str, Plugin]:
    """All plugins; none where they cannot be combined, which other commands report."""
    try:
        with log_as_warnings(SILENT):
            return load_plugins(settings).found
    except HooklineError:
        return {}


def _plugin_models() -> dict[str, type[BaseModel]]:
    """The settings models of the plugins that are installed and work."""
    found = _plugins(Settings()).items()
    return {name: plugin.settings_model for name, plugin in found if plugin.settings_model}
