"""All plugins as their sources and the configuration describe them. Nothing of them is run.

So it works, and says why a plugin cannot, also where every plugin is broken. What only shows when
code runs (a constructor that fails, settings that a validator refuses) stays unseen.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from hookline.choice import named_in, wanted
from hookline.config import Settings
from hookline.contract import SPEC, marked
from hookline.errors import ConfigError, PluginError
from hookline.hookspecs import Hooks
from hookline.order import Order, order_of
from hookline.outline import Outline, missing_modules, missing_names, outline_of
from hookline.plugin import Plugin
from hookline.plugin_checks import Shape, check
from hookline.plugin_sources import PluginSource, all_sources
from hookline.python_source import Unreadable


@dataclass(slots=True)
class Surveyed:
    """A plugin that was read: ``outline`` is what its source says, None where there is none."""

    plugin: Plugin
    source: PluginSource
    outline: Outline | None = None


@dataclass(slots=True)
class Survey:
    """All plugins by name, those in use first and in their order.

    ``refusal`` is what is wrong with the configuration of plugins; then none of them is loaded.
    """

    plugins: dict[str, Surveyed] = field(default_factory=dict)
    refusal: ConfigError | None = None

    def hooks(self) -> list[str]:
        """Every hook that there is: the core's, and those that plugins in use add."""
        outlines = [read.outline for read in self.plugins.values() if read.plugin.state == "active"]
        return [*marked(Hooks, SPEC), *(name for o in outlines if o for name in o.added)]

    def adds(self, hook: str) -> str | None:
        """The plugin that adds a hook, in use or not."""
        outlines = {name: read.outline for name, read in self.plugins.items()}
        return next((name for name, o in outlines.items() if o and hook in o.added), None)

    def order(self, hook: str) -> Order:
        """In which order those that nothing speaks against are called."""
        active = [read.plugin for read in self.plugins.values() if read.plugin.state == "active"]
        return order_of(active, hook)


def survey(settings: Settings, reserved: Iterable[str] = ()) -> Survey:
    """Reads all plugins; ``reserved`` are the request fields of the core.

    A plugin is ``active`` where it is in use and nothing speaks against it. Raises ConfigError
    where the folder of plugins is missing.
    """
    sources = all_sources(settings)
    result = Survey()
    try:
        names = wanted(settings, sources)
    except ConfigError as error:
        result.refusal = error
        names = [name for name in dict.fromkeys(named_in(settings, sources)[0]) if name in sources]
    for name in [*names, *(name for name in sources if name not in names)]:
        result.plugins[name] = _read(sources[name], settings, in_use=name in names)
    if result.refusal:
        for name in names:
            plugin = result.plugins[name].plugin
            plugin.state, plugin.reason = "failed", "not loaded: the configuration is refused"
    check(_shaped(result.plugins), reserved, result.adds)
    return result


def _shaped(plugins: Mapping[str, Surveyed]) -> list[tuple[Plugin, Shape]]:
    return [
        (read.plugin, Shape.read(read.outline) if read.outline else Shape())
        for read in plugins.values()
        if read.plugin.state == "active"
    ]


def _read(source: PluginSource, settings: Settings, *, in_use: bool) -> Surveyed:
    plugin = Plugin(
        source.name,
        "active" if in_use else "off",
        None if in_use else "not in 'plugins' of the configuration",
        version=source.version,
        distribution=source.distribution,
        essential=source.name in settings.essential,
        written=source.name in (settings.plugins or ()),
    )
    read = Surveyed(plugin, source)
    try:
        problem = source.problem or _outline(read)
    except (Unreadable, PluginError, ValueError) as error:
        problem = str(error)
    if problem and in_use:
        plugin.state, plugin.reason = "failed", problem
    elif problem:
        plugin.reason = f"{plugin.reason}; {problem}"
    return read


def _outline(read: Surveyed) -> str | None:
    """Reads the outline, and gives the first thing that is wrong. Raises what reading raises."""
    source, kind = read.source.read()
    plugin = read.plugin
    if kind is not None:
        outline = read.outline = outline_of(kind)
        plugin.about, plugin.hooks = outline.about, tuple(outline.hooks)
        plugin.essential |= outline.about.essential
        source = kind.source
    problem = plugin.about.problem(plugin.distribution)
    if problem or source is None or plugin.state == "off":
        return problem
    missing = min(missing_modules(source), default=None)
    if missing:
        return f"needs '{missing}', which is not installed"
    name = min(missing_names(source), default=None)
    return f"imports '{name}' from hookline, which has no such name" if name else None
