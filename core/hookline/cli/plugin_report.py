"""A plugin as the commands show it: what its source says, and what the running server says."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from typing import Any

from hookline.about import EVERY_HOOK, Wishes
from hookline.cli.running import Running
from hookline.config.fields import masked
from hookline.outline import OutlineField
from hookline.python_source import literal
from hookline.survey import Surveyed

NOT_RUN = {"active": "on", "off": "off", "failed": "failed"}
"""States of plugins that were only read: ``on`` is in use, and nothing speaks against it."""


def report(read: Surveyed, running: Running | None) -> dict[str, Any]:
    """What ``list`` shows; states are the running server's where there is one."""
    plugin, outline = read.plugin, read.outline
    at_work = running.plugins.get(plugin.name) if running else None
    state, reason = NOT_RUN[plugin.state], plugin.reason
    if at_work is not None:
        state, reason = _at_work(at_work)
    elif running is not None and running.answers and state == "on":
        state, reason = "off", f"the server at {running.url} does not know it: restart that"
    return {
        "name": plugin.name,
        "state": state,
        "reason": reason,
        "version": plugin.version,
        "hooks": list(plugin.hooks),
        "fields": list(outline.fields) if outline else [],
        "settings": list(outline.settings or ()) if outline else [],
        "essential": plugin.essential,
        "running": at_work,
    }


def _at_work(plugin: Mapping[str, Any]) -> tuple[str, str | None]:
    state, reason = plugin["state"], plugin.get("reason")
    if plugin.get("breaker", "closed") != "closed":
        state = "paused"
    if not reason and plugin.get("last_failure"):
        reason = f"failures: {plugin.get('failures')}, the last: {plugin['last_failure']}"
    return str(state), reason


def details(read: Surveyed, running: Running | None, table: Mapping[str, Any]) -> dict[str, Any]:
    """What ``info`` shows; ``table`` are the plugin's settings as they are written."""
    plugin, outline, about = read.plugin, read.outline, read.plugin.about
    known = report(read, running)
    del known["fields"], known["settings"]  # they come last, with everything about them
    return {
        **known,
        "description": outline.description if outline else None,
        "distribution": plugin.distribution,
        "file": str(read.source.file) if read.source.file else None,
        "api": about.api or None,
        "requires": sorted(about.requires),
        "provides": sorted(about.provides),
        "extras": sorted(about.extras),
        "before": _shown(about.before),
        "after": _shown(about.after),
        "adds_hooks": sorted(outline.added) if outline else [],
        "fields": _fields(outline.fields if outline else {}),
        "settings": _fields((outline and outline.settings) or {}, table),
    }


def _shown(wishes: Wishes) -> list[str]:
    return [
        name if hook == EVERY_HOOK else f"{name} in {hook}"
        for hook, names in wishes.items()
        for name in sorted(names)
    ]


def _fields(
    fields: Mapping[str, OutlineField], values: Mapping[str, Any] | None = None
) -> dict[str, dict[str, Any]]:
    """Each field with its description, its value if it is set, and its default: as a value where it
    is written out, and as it is ``written``, which is None where there is none."""
    described: dict[str, dict[str, Any]] = {}
    for name, field in fields.items():
        entry: dict[str, Any] = {
            "type": field.annotation,
            "default": _value(field.default),
            "written": field.default,
            "description": field.description,
        }
        if values and name in values:
            entry["value"] = masked(name, values[name])
        described[name] = entry
    return described


def _value(written: str | None) -> Any:
    """The value of an expression that JSON can hold; None where it is none."""
    value = literal(ast.parse(written, mode="eval").body, None) if written else None
    return sorted(value) if isinstance(value, (set, frozenset)) else value


def lines(about: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Details as rows of a name and a value; fields and settings a row each."""
    for name, value in about.items():
        if name in ("fields", "settings"):
            for field, entry in value.items():
                now = repr(entry["value"]) if "value" in entry else entry["written"] or "(required)"
                text = " ".join((entry["description"] or "").split())
                yield f"{name[:-1]} {field}", f"{now}  {text}".rstrip()
        elif name == "running":
            for key in ("failures", "overruns", "last_failure", "breaker") if value else ():
                yield key.replace("_", " "), value.get(key)
        elif value not in (None, [], ""):
            yield name.replace("_", " "), ", ".join(value) if isinstance(value, list) else value
