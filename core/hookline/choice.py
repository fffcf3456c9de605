"""Which plugins are in use, and in which order: what ``plugins`` in the configuration means."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches

from hookline.config import Settings
from hookline.config.origins import Key
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
    named, off = named_in(settings, sources)
    if problems := [*_unknown_names(settings, sources, extra)]:
        raise ConfigError("\n".join(problems))
    for name in named:
        if named.count(name) > 1 or name in off:
            raise ConfigError(f"'plugins' names the plugin '{name}' twice.")
    if problems := [*_essential_and_off(settings, [*named, *extra])]:
        raise ConfigError("\n".join(problems))
    return named


def _essential_and_off(settings: Settings, names: Sequence[str]) -> Iterator[str]:
    """A line for each essential plugin that is not in use."""
    origin = settings.origins.around(("essential",))
    where = "" if origin.kind == "default" else f"{origin}: "
    for name in settings.essential:
        if name not in names:
            close = get_close_matches(name, names, 1)
            hint = f" Did you mean '{close[0]}'?" if close else ""
            yield f"{where}'essential' names '{name}', which is no plugin in use.{hint}"


def named_in(
    settings: Settings, sources: Mapping[str, PluginSource]
) -> tuple[list[str], list[str]]:
    """The names that the configuration switches on, in its order, and those that it switches
    off; also such as are no plugin's."""
    entries = [BUILT_IN] if settings.plugins is None else settings.plugins
    off = [entry.removeprefix(OFF) for entry in entries if entry.startswith(OFF)]
    listed = [entry for entry in entries if not entry.startswith(OFF)] or (off and [BUILT_IN])
    rest = [
        name
        for name, source in sources.items()
        if (source.built_in or source.file) and name not in (*listed, *off)
    ]
    return [name for entry in listed for name in (rest if entry == BUILT_IN else [entry])], off


def _unknown_names(
    settings: Settings, sources: Mapping[str, PluginSource], extra: Iterable[str]
) -> Iterator[str]:
    """A line for each place that names a plugin which is not there: where, and what to do."""
    entries = dict.fromkeys(entry.removeprefix(OFF) for entry in settings.plugins or ())
    places: list[tuple[str, Key]] = [(name, ("plugins",)) for name in entries if name != BUILT_IN]
    places += [(name, ("plugin", name)) for name in settings.plugin if name not in {*extra}]
    for name, key in places:
        if name not in sources:
            what = "'plugins'" if key == ("plugins",) else f"[plugin.{name}]"
            origin = settings.origins.around(key)
            where = what if origin.kind == "default" else f"{origin}: {what}"
            yield (
                f"{where}: {unknown(name, sources)} Correct it, install that plugin, or run: "
                f"hookline plugins disable {name}"
            )


def unknown(name: str, known: Iterable[str]) -> str:
    """That there is no such plugin, and which was meant."""
    names = sorted(known)
    close = get_close_matches(name, names, 1)
    hint = f"Did you mean '{close[0]}'?" if close else f"Installed: {', '.join(names) or 'none'}."
    return f"There is no plugin '{name}'. {hint}"
