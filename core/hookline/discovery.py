"""Loads plugins, and checks that they fit, before any of their hooks is called.

Whatever is wrong with one plugin becomes one line in its `Plugin.reason`; the others go on. Only
two things stop the start: a name that matches nothing, and an essential plugin that cannot work.
"""

from __future__ import annotations

import inspect
import logging
import sys
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeVar, cast

import pluggy
from pydantic import BaseModel, create_model

from hookline.about import About
from hookline.breaker import Breaker
from hookline.choice import wanted
from hookline.config import Settings, validate_plugin_table
from hookline.errors import ConfigError, PluginError
from hookline.faults import described
from hookline.hookspecs import Hooks
from hookline.outline import Outline, outline_of
from hookline.plugin import Plugin
from hookline.plugin_checks import Shape, check
from hookline.plugin_sources import GROUP, PluginSource, all_sources
from hookline.plugins import Plugins
from hookline.python_source import Unreadable
from hookline.watchdog import telling_if_slow

__all__ = ["GROUP", "load_plugins", "request_model"]

log = logging.getLogger(__name__)

Request = TypeVar("Request", bound=BaseModel)


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
    sources = all_sources(settings)
    plugins = [_from_object(name, thing, settings) for name, thing in (extra or {}).items()]
    names = wanted(settings, sources, extra or {})
    if twice := next((name for name in names if name in (extra or {})), None):
        raise PluginError(
            f"The program brings a plugin '{twice}', and one of that name is on already; "
            f"put '-{twice}' into 'plugins'."
        )
    plugins += [_made(sources[name], settings) for name in names]
    plugins += [_of_core(name, thing) for name, thing in (core or {}).items()]
    shaped = [(plugin, Shape.of(plugin)) for plugin in plugins]
    check(shaped, reserved, lambda hook: _adds(hook, sources.values()))
    _check_essential(plugins)
    for plugin in plugins:
        if plugin.state == "failed":
            plugin.lost_fields = _lost_fields(plugin, sources.get(plugin.name))
    found = {plugin.name: plugin for plugin in plugins}
    for name, source in sources.items():
        found.setdefault(name, _off(source))
    return Plugins(found, _registered(plugins), settings.isolation)


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


# Made one by one


def _off(source: PluginSource) -> Plugin:
    reason = source.problem or "not in 'plugins' of the configuration"
    return Plugin(
        source.name, "off", reason, version=source.version, distribution=source.distribution
    )


def _of_core(name: str, thing: object) -> Plugin:
    """One of the server's own: it is essential, and never left alone for its failures."""
    breaker = Breaker(limit=sys.maxsize)
    return Plugin(name, instance=thing, core=True, essential=True, breaker=breaker)


def _from_object(name: str, thing: object, settings: Settings) -> Plugin:
    if inspect.isclass(thing):
        return _made(PluginSource(name, lambda: thing), settings)
    plugin = _unmade(PluginSource(name, lambda: None), settings)
    plugin.instance = thing
    plugin.request_fields = getattr(thing, "request_fields", None)
    try:
        _take(plugin, lambda: About.of(thing))
    except PluginError as error:
        plugin.fail(str(error))
    return plugin


def _unmade(source: PluginSource, settings: Settings) -> Plugin:
    limits = settings.isolation
    return Plugin(
        source.name,
        version=source.version,
        distribution=source.distribution,
        essential=source.name in settings.essential,
        written=source.name in (settings.plugins or ()),
        breaker=Breaker(limits.max_failures, limits.pause_seconds),
    )


def _made(source: PluginSource, settings: Settings) -> Plugin:
    """Imports and constructs; every failure becomes the plugin's reason."""
    plugin = _unmade(source, settings)
    try:
        if source.problem:
            raise PluginError(source.problem)
        _take(plugin, lambda: about_in(source))  # before anything of it runs
        with telling_if_slow(f"importing the plugin {source.name}"):
            kind = source.load()
        _take(plugin, lambda: About.of(kind))  # where its source was not to be read
        plugin.settings_model = getattr(kind, "settings_model", None)
        plugin.instance = _construct(kind, plugin, settings)
        _take(plugin, lambda: About.of(plugin.instance))
        plugin.request_fields = getattr(plugin.instance, "request_fields", None)
    except ModuleNotFoundError as error:
        plugin.fail(_missing_module(source, error))
    except (ConfigError, PluginError) as error:
        plugin.fail("; ".join(str(error).splitlines()))
    except (Exception, SystemExit) as error:
        log.debug("plugin %s", source.name, exc_info=True)
        plugin.fail(f"cannot be loaded: {described(error)}")
    return plugin


def about_in(source: PluginSource) -> About:
    """What a plugin's source says about it; where it cannot be read, importing it tells more."""
    try:
        _, kind = source.read()
    except Unreadable:
        return About()
    return About.read(kind.literal) if kind is not None else About()


def _take(plugin: Plugin, read: Callable[[], About]) -> None:
    """Notes what a plugin says about itself. Raises PluginError where it cannot work here."""
    try:
        about = read()
    except ValueError as error:
        raise PluginError(str(error)) from None
    if about == plugin.about:
        return  # it was looked at already
    plugin.about = about
    plugin.essential |= plugin.about.essential
    if problem := plugin.about.problem(plugin.distribution):
        raise PluginError(problem)


def _construct(kind: Callable[..., object], plugin: Plugin, settings: Settings) -> object:
    table = settings.plugin.get(plugin.name, {})
    if plugin.settings_model is None:
        if table:
            raise ConfigError(f"[plugin.{plugin.name}] has settings, but this plugin takes none.")
        if needed := _required_arguments(kind):
            raise PluginError(f"its constructor needs '{needed[0]}', but it has no settings_model")
        return kind()
    plugin.settings = validate_plugin_table(
        plugin.name, plugin.settings_model, table, settings.origins
    )
    return kind(plugin.settings)


def _required_arguments(kind: Callable[..., object]) -> list[str]:
    try:
        parameters = inspect.signature(kind).parameters.values()
    except (TypeError, ValueError):
        return []  # nothing of Python's own
    variable = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return [p.name for p in parameters if p.default is p.empty and p.kind not in variable]


def _missing_module(source: PluginSource, error: ModuleNotFoundError) -> str:
    if source.built_in:
        return f"needs '{error.name}'; install it with: pip install 'hookline[{source.name}]'"
    again = f"; reinstall {source.distribution}" if source.distribution else ""
    return f"needs '{error.name}', which is not installed{again}"


# Checked together


def _adds(hook: str, sources: Iterable[PluginSource]) -> str | None:
    """The plugin whose source says that it adds a hook."""
    return next((source.name for source in sources if hook in _read(source).added), None)


def _read(source: PluginSource) -> Outline:
    """What a plugin's source says; nothing where it cannot be read."""
    try:
        kind = source.read()[1]
        return outline_of(kind) if kind is not None else Outline(None, About())
    except (Unreadable, PluginError, ValueError):
        return Outline(None, About())


def _lost_fields(plugin: Plugin, source: PluginSource | None) -> tuple[str, ...]:
    """The request fields of a plugin that failed, also where it could not even be imported."""
    if plugin.request_fields is not None:
        return tuple(plugin.request_fields.model_fields)
    return tuple(_read(source).fields) if source is not None else ()


def _check_essential(plugins: Iterable[Plugin]) -> None:
    for plugin in plugins:
        if plugin.essential and plugin.state == "failed":
            raise PluginError(f"The essential plugin '{plugin.name}' {plugin.reason}.")


def _registered(plugins: Sequence[Plugin]) -> pluggy.PluginManager:
    """pluggy's register: every hook, and who implements it. `Plugins` knows the order."""
    manager = pluggy.PluginManager("hookline")
    manager.add_hookspecs(Hooks)
    for plugin in plugins:
        if plugin.state == "active" and (specs := getattr(plugin.instance, "hookspecs", None)):
            manager.add_hookspecs(specs)
    for plugin in plugins:
        if plugin.state == "active":
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")  # of deprecated hooks: `check` named the plugin
                    manager.register(plugin.instance, plugin.name)
            except pluggy.PluginValidationError as error:
                plugin.fail(str(error))
    return manager
