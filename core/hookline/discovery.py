"""Finds plugins, makes them, and checks that they fit, before any of them is called.

Whatever is wrong with one plugin becomes one line in its `Plugin.reason`; the others go on. Only
three things stop the start: a name that matches nothing, two plugins that claim one request field,
and an essential plugin that cannot work.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from importlib.metadata import EntryPoint, entry_points
from typing import Any, TypeVar, cast

import pluggy
from pydantic import BaseModel, create_model

from hookline.config import Settings, validate_plugin_table
from hookline.errors import ConfigError, PluginError
from hookline.hookspecs import Hooks
from hookline.plugins import Plugin, Plugins, empty_manager

log = logging.getLogger(__name__)

Request = TypeVar("Request", bound=BaseModel)
Spec = Callable[..., Any]

GROUP = "hookline.plugins"
"""The entry point group that announces plugins."""

BUILT_IN = "*"
"""In ``plugins``, stands for every built-in plugin that is not named."""

PROVIDERS = {"constraint": "create_constraint", "embedder": "create_embedder"}
"""What a plugin may ask for in ``requires``, and the hook that provides it."""


@dataclass(frozen=True, slots=True)
class Source:
    """Where a plugin comes from: an entry point, or an object made by the program itself."""

    name: str
    load: Callable[[], Any]
    distribution: str | None = None
    version: str | None = None

    @classmethod
    def of_entry_point(cls, entry: EntryPoint) -> Source:
        """A plugin installed as a package."""
        dist = entry.dist
        return cls(
            entry.name, entry.load, dist.name if dist else None, dist.version if dist else None
        )


def installed() -> dict[str, Source]:
    """Every announced plugin by name. Raises PluginError when two packages announce one name."""
    found: dict[str, Source] = {}
    for entry in entry_points(group=GROUP):
        source = Source.of_entry_point(entry)
        other = found.setdefault(entry.name, source)
        if other.distribution != source.distribution:
            raise PluginError(
                f"Two packages announce a plugin '{entry.name}': {other.distribution} and "
                f"{source.distribution}. Uninstall one of them."
            )
    return found


def load_plugins(
    settings: Settings,
    *,
    core: Mapping[str, object] | None = None,
    extra: Mapping[str, object] | None = None,
    reserved: Iterable[str] = (),
) -> Plugins:
    """Finds, makes, checks and orders the plugins.

    ``core`` are the server's own, called after all others so that theirs are the last answers.
    ``extra`` are instances or classes brought by the program, called first. ``reserved`` are the
    request fields of the core. Raises StartError.
    """
    sources = installed()
    names = _wanted(settings, sources, extra or {})
    plugins = [_from_object(name, thing, settings) for name, thing in (extra or {}).items()]
    plugins += [_make(sources[name], settings) for name in names]
    plugins += [Plugin(name, instance=thing, core=True) for name, thing in (core or {}).items()]
    specs = _specs(plugins)
    for plugin in plugins:
        _check(plugin, specs)
    _check_essential_names(settings, plugins)
    _check_fields(plugins, reserved)
    _check_requirements(plugins)
    _check_essential(plugins)
    found = {plugin.name: plugin for plugin in plugins}
    for name in sources.keys() - found.keys():
        found[name] = Plugin(name, "off", "not in 'plugins' of the configuration")
    return Plugins(found, _registered(plugins))


def request_model(base: type[Request], fields: Sequence[type[BaseModel]]) -> type[Request]:
    """The core's request and all plugins' fields as one model.

    An instance of it is an instance of each of them, which makes the typed view free. How strict
    it is stays the core's to say, whatever the plugins' models are like.
    """
    bases = cast(tuple[type[Request], ...], (base, *fields))
    return create_model(
        base.__name__,
        __base__=bases,
        __module__=base.__module__,
        __cls_kwargs__=dict(base.model_config),
    )


def _wanted(settings: Settings, sources: Mapping[str, Source], extra: Iterable[str]) -> list[str]:
    own = [name for name, source in sources.items() if source.distribution == "hookline"]
    listed = [BUILT_IN] if settings.plugins is None else settings.plugins
    unlisted = [name for name in own if name not in listed]
    names = [n for name in listed for n in (unlisted if name == BUILT_IN else [name])]
    for name in [*names, *(settings.plugin.keys() - set(extra))]:
        if name not in sources:
            raise ConfigError(_unknown(name, sources))
    if len(set(names)) < len(names):
        raise ConfigError(f"'plugins' names one plugin twice: {', '.join(names)}.")
    return names


def _unknown(name: str, sources: Mapping[str, Source]) -> str:
    close = get_close_matches(name, sources, 1)
    known = ", ".join(sorted(sources)) or "none"
    hint = f"Did you mean '{close[0]}'?" if close else f"Installed: {known}."
    return f"There is no plugin '{name}'. {hint}"


def _from_object(name: str, thing: object, settings: Settings) -> Plugin:
    if inspect.isclass(thing):
        return _make(Source(name, lambda: thing), settings)
    return Plugin(name, instance=thing)


def _make(source: Source, settings: Settings) -> Plugin:
    """Imports and constructs; every failure becomes the plugin's reason."""
    plugin = Plugin(
        source.name,
        version=source.version,
        distribution=source.distribution,
        essential=source.name in settings.essential,
    )
    try:
        kind = source.load()
        plugin.essential |= getattr(kind, "essential", False)
        plugin.settings_model = getattr(kind, "settings_model", None)
        plugin.instance = _construct(kind, plugin, settings)
    except ModuleNotFoundError as error:
        _fail(plugin, _missing_module(source, error))
    except ConfigError as error:
        _fail(plugin, "; ".join(str(error).splitlines()))
    except Exception as error:
        log.debug("plugin %s", source.name, exc_info=True)
        _fail(plugin, f"cannot be loaded: {type(error).__name__}: {error}")
    return plugin


def _construct(kind: Callable[..., object], plugin: Plugin, settings: Settings) -> object:
    table = settings.plugin.get(plugin.name, {})
    if plugin.settings_model is None:
        if table:
            raise ConfigError(f"[plugin.{plugin.name}] has settings, but this plugin takes none.")
        return kind()
    plugin.settings = validate_plugin_table(
        plugin.name, plugin.settings_model, table, settings.origins
    )
    return kind(plugin.settings)


def _missing_module(source: Source, error: ModuleNotFoundError) -> str:
    if source.distribution == "hookline":
        return f"needs '{error.name}'; install it with: pip install 'hookline[{source.name}]'"
    return f"needs '{error.name}', which is not installed; reinstall {source.distribution}"


def _fail(plugin: Plugin, reason: str) -> None:
    log.error("plugin %s is off: %s", plugin.name, reason)
    plugin.state, plugin.reason = "failed", " ".join(reason.split())


def _specs(plugins: Iterable[Plugin]) -> dict[str, Spec]:
    """Every hook there is: the core's, and those that plugins add."""
    specs = _marked(Hooks, "hookline_spec")
    for plugin in plugins:
        added = _marked(getattr(plugin.instance, "hookspecs", None), "hookline_spec")
        if taken := specs.keys() & added:
            _fail(plugin, f"adds a hook '{min(taken)}', which exists already")
        elif later := [name for name, spec in added.items() if inspect.iscoroutinefunction(spec)]:
            _fail(plugin, f"adds a hook '{later[0]}', which must be written with 'def'")
        else:
            specs |= added
    return specs


def _marked(owner: object, mark: str) -> dict[str, Spec]:
    """The methods of a class that have one of pluggy's marks."""
    return {
        name: method
        for name, method in inspect.getmembers(owner, callable)
        if isinstance(getattr(method, mark, None), dict)
    }


def _check(plugin: Plugin, specs: Mapping[str, Spec]) -> None:
    """Reads the instance's marks and refuses what the contract does not know."""
    if plugin.state != "active":
        return
    plugin.request_fields = getattr(plugin.instance, "request_fields", None)
    if needed := _without_default(plugin.request_fields):
        _fail(plugin, f"its request field '{needed}' has no default, which every field needs")
    marked = {
        name: method
        for name, method in _marked(type(plugin.instance), "hookline_impl").items()
        if name in specs or not method.hookline_impl["optionalhook"]  # type: ignore[attr-defined]
    }
    problems = [_problem(name, method, specs) for name, method in marked.items()]
    if first := next(filter(None, problems), None):
        _fail(plugin, first)
    plugin.hooks = tuple(marked)
    if not marked:
        log.warning("plugin %s has no hooks; are its methods marked with hookimpl?", plugin.name)


def _problem(name: str, method: Callable[..., Any], specs: Mapping[str, Spec]) -> str | None:
    spec = specs.get(name)
    if spec is None:
        close = get_close_matches(name, specs, 1)
        return f"there is no hook '{name}'" + (f"; did you mean '{close[0]}'?" if close else "")
    options = method.hookline_impl  # type: ignore[attr-defined]
    if options["wrapper"] or options["hookwrapper"]:
        return f"'{name}' is a wrapper; plugins are called one by one, so wrappers cannot work"
    if inspect.iscoroutinefunction(method) != inspect.iscoroutinefunction(spec):
        colour = "async def" if inspect.iscoroutinefunction(spec) else "def"
        return f"'{name}' must be written with '{colour}'"
    known = set(inspect.signature(spec).parameters)
    unknown = [arg for arg in inspect.signature(method).parameters if arg not in known]
    if unknown:
        return f"'{name}' takes '{unknown[0]}', but the hook offers only {', '.join(_args(spec))}"
    return None


def _without_default(fields: type[BaseModel] | None) -> str | None:
    named = fields.model_fields if fields else {}
    return next((name for name, info in named.items() if info.is_required()), None)


def _args(spec: Callable[..., Any]) -> list[str]:
    return [name for name in inspect.signature(spec).parameters if name != "self"]


def _check_fields(plugins: Iterable[Plugin], reserved: Iterable[str]) -> None:
    owners = dict.fromkeys(reserved, "the core")
    for plugin in plugins:
        if plugin.state != "active" or plugin.request_fields is None:
            continue
        for name in plugin.request_fields.model_fields:
            owner = owners.setdefault(name, plugin.name)
            if owner != plugin.name:
                raise PluginError(
                    f"'{owner}' and the plugin '{plugin.name}' both have the request field "
                    f"'{name}'. Take one of them out of 'plugins'."
                )


def _check_requirements(plugins: Sequence[Plugin]) -> None:
    """Fails those whose needs nobody meets, until nothing changes: one may have met another's."""
    while True:
        active = [plugin for plugin in plugins if plugin.state == "active"]
        hooks = {hook for plugin in active for hook in plugin.hooks}
        failed = False
        for plugin in active:
            for need in sorted(getattr(plugin.instance, "requires", ())):
                if PROVIDERS.get(need) not in hooks and plugin.state == "active":
                    failed = True
                    _fail(plugin, f"needs a plugin that provides '{need}', and none does")
        if not failed:
            return


def _check_essential_names(settings: Settings, plugins: Sequence[Plugin]) -> None:
    names = [plugin.name for plugin in plugins]
    for name in settings.essential:
        if name not in names:
            close = get_close_matches(name, names, 1)
            hint = f" Did you mean '{close[0]}'?" if close else ""
            raise ConfigError(f"'essential' names '{name}', which is no plugin in use.{hint}")


def _check_essential(plugins: Iterable[Plugin]) -> None:
    for plugin in plugins:
        if plugin.essential and plugin.state == "failed":
            raise PluginError(f"The essential plugin '{plugin.name}' {plugin.reason}.")


def _registered(plugins: Sequence[Plugin]) -> pluggy.PluginManager:
    """Registers last to first: pluggy calls the last registered first."""
    manager = empty_manager()
    for plugin in plugins:
        if plugin.state == "active" and (specs := getattr(plugin.instance, "hookspecs", None)):
            manager.add_hookspecs(specs)
    for plugin in reversed(plugins):
        if plugin.state == "active":
            try:
                manager.register(plugin.instance, plugin.name)
            except pluggy.PluginValidationError as error:
                _fail(plugin, str(error))
    return manager
