"""``hookline plugins``: which plugins there are, and whether and how they work."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from typing import Any

import click
from pydantic import BaseModel

from hookline.api.schema import ChatRequest
from hookline.cli.output import SILENT, json_option, log_as_warnings, note, print_json, print_table
from hookline.config import Settings
from hookline.config.check import did_you_mean, suggest
from hookline.config.fields import masked
from hookline.discovery import load_plugins
from hookline.errors import PluginError, StartError
from hookline.plugin import Plugin
from hookline.plugin_sources import installed


@click.group()
def plugins() -> None:
    """Plugins: which there are, and whether they work."""


@plugins.command("list")
@json_option
@click.pass_obj
def list_plugins(settings: Settings, as_json: bool) -> None:
    """Lists all plugins in the order of their calls, with their state."""
    found, refusal = loaded(settings)
    if as_json:
        print_json([plugin.summary() for plugin in found.values()])
    elif found:
        rows = [(p.name, p.state, p.version, p.reason) for p in found.values()]
        print_table(("plugin", "state", "version", "reason"), rows)
    elif not refusal:
        note("No plugin is installed.")
    if refusal:
        raise refusal


@plugins.command()
@click.argument("name")
@json_option
@click.pass_obj
def info(settings: Settings, name: str, as_json: bool) -> None:
    """Shows what the plugin NAME is, which fields and settings it has, and what it hooks into."""
    found, refusal = loaded(settings)
    if name not in found:
        raise PluginError(
            f"There is no plugin '{name}'" + did_you_mean(suggest(name, found))
        ) from refusal
    details = _details(found[name])
    if as_json:
        print_json(details)
    else:
        print_table(("", ""), list(_lines(details)))
    if refusal:
        raise refusal


def loaded(settings: Settings) -> tuple[Mapping[str, Plugin], StartError | None]:
    """All plugins but the core's own and, where they cannot work together, why not."""
    try:
        with log_as_warnings(SILENT):
            return load_plugins(settings, reserved=ChatRequest.model_fields).found, None
    except StartError as error:
        reason = "not loaded: the configuration of plugins is refused"
        sources = installed() if not isinstance(error, PluginError) else {}
        return {
            name: Plugin(
                name, "off", reason, version=source.version, distribution=source.distribution
            )
            for name, source in sources.items()
        }, error


def _details(plugin: Plugin) -> dict[str, Any]:
    about = inspect.getdoc(type(plugin.instance)) if plugin.instance is not None else None
    return {
        **plugin.summary(),
        "description": about,
        "distribution": plugin.distribution,
        "fields": _described(plugin.request_fields, None),
        "settings": _described(plugin.settings_model, plugin.settings),
    }


def _described(
    model: type[BaseModel] | None, values: BaseModel | None
) -> dict[str, dict[str, Any]]:
    """A model's fields: description, default and, of settings, the value."""
    described: dict[str, dict[str, Any]] = {}
    for name, field in model.model_fields.items() if model else ():
        default = None if field.is_required() else field.get_default(call_default_factory=True)
        entry = {"description": field.description, "required": field.is_required()}
        entry["default"] = masked(name, default, field.annotation)
        if values is not None:
            entry["value"] = masked(name, getattr(values, name), field.annotation)
        described[name] = entry
    return described


def _lines(details: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Details as rows of a name and a value; fields and settings a row each."""
    for name, value in details.items():
        if name in ("fields", "settings"):
            for field, entry in value.items():
                now = entry.get("value", entry["default"])
                about = " ".join((entry["description"] or "").split())
                yield f"{name[:-1]} {field}", f"{now!r}  {about}".rstrip()
        elif value not in (None, []):
            yield name, ", ".join(value) if isinstance(value, list) else value
