"""Which plugins are in use, and in which order: what ``plugins`` in the configuration means."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from difflib import get_close_matches

from hookline.config import Settings
from hookline.errors import ConfigError
from hookline.plugin_sources import PluginSource

BUILT_IN = "*"
"""In ``plugins``, stands for every built-in plugin, and every file, that is not named."""

OFF = "-"
"""In ``plugins``, stands before the name of one that is to be off."""


def wanted(
    settings: Settings, sources: Mapping[str, PluginSource], extra: Iterable[str] = ()
) -> list[str]:
    """The names of the plugins in use, in the order of the configuration. Raises ConfigError.

    ``extra`` are names that settings may have tables for, besides those of ``sources``.
    """
    entries = [BUILT_IN] if settings.plugins is None else settings.plugins
    off = [entry.removeprefix(OFF) for entry in entries if entry.startswith(OFF)]
    listed = [entry for entry in entries if not entry.startswith(OFF)] or (off and [BUILT_IN])
    rest = [
        name
        for name, source in sources.items()
        if (source.built_in or source.file) and name not in (*listed, *off)
    ]
    names = [name for entry in listed for name in (rest if entry == BUILT_IN else [entry])]
    for name in [*names, *off, *(settings.plugin.keys() - set(extra))]:
        if name not in sources:
            raise ConfigError(unknown(name, sources))
    for name in names:
        if names.count(name) > 1 or name in off:
            raise ConfigError(f"'plugins' names the plugin '{name}' twice.")
    return names


def unknown(name: str, known: Iterable[str]) -> str:
    """That there is no such plugin, and which was meant."""
    names = sorted(known)
    close = get_close_matches(name, names, 1)
    hint = f"Did you mean '{close[0]}'?" if close else f"Installed: {', '.join(names) or 'none'}."
    return f"There is no plugin '{name}'. {hint}"
