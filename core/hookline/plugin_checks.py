"""What must be so for plugins to work, each by itself and all together.

The same checks hold for classes that were imported and for sources that were only read: both are
a `Shape`. Whatever is wrong becomes the reason of one plugin.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from hookline.contract import (
    IMPLEMENTATION,
    SPEC,
    HookMethod,
    HookMethods,
    deprecations,
    first_problem,
    implemented,
    marked,
    refused_spec,
)
from hookline.hookspecs import Hooks
from hookline.outline import Outline
from hookline.plugin import Plugin

log = logging.getLogger("hookline.discovery")

PROVIDERS = {"constraint": "create_constraint", "embedder": "create_embedder"}
"""Services that a plugin provides by implementing a hook."""


@dataclass(frozen=True, slots=True)
class Shape:
    """What others see of a plugin: methods that implement hooks, hooks that it adds, and its
    request fields, each with whether it has a default."""

    methods: HookMethods = field(default_factory=dict)
    added: HookMethods = field(default_factory=dict)
    fields: Mapping[str, bool] = field(default_factory=dict)

    @classmethod
    def of(cls, plugin: Plugin) -> Shape:
        """As its instance is."""
        model = plugin.request_fields
        return cls(
            marked(type(plugin.instance), IMPLEMENTATION),
            marked(getattr(plugin.instance, "hookspecs", None), SPEC),
            {name: not info.is_required() for name, info in model.model_fields.items()}
            if model
            else {},
        )

    @classmethod
    def read(cls, outline: Outline) -> Shape:
        """As its source describes it."""
        fields = {name: field.default is not None for name, field in outline.fields.items()}
        return cls(outline.hooks, outline.added, fields)


Shaped = Sequence[tuple[Plugin, Shape]]


Adds = Callable[[str], str | None]
"""Which of the plugins that do not work would add a hook."""


def check(plugins: Shaped, reserved: Iterable[str] = (), adds: Adds = lambda hook: None) -> None:
    """Fails every plugin that does not fit; ``reserved`` are the request fields of the core.

    Goes on until nothing changes: one that fails may be what another needs.
    """
    active = -1
    while active != (active := sum(plugin.state == "active" for plugin, _ in plugins)):
        specs = _specs(plugins)
        for plugin, shape in plugins:
            if plugin.state == "active":
                _check_hooks(plugin, shape, specs, adds)
        _check_requirements([plugin for plugin, _ in plugins])
        _check_fields(plugins, reserved)
    for plugin, shape in plugins:
        if plugin.state == "active":
            _advise(plugin, shape, specs)


def _specs(plugins: Shaped) -> dict[str, HookMethod]:
    """Every hook there is: the core's, and those that working plugins add."""
    specs = marked(Hooks, SPEC)
    for plugin, shape in plugins:
        if plugin.state != "active":
            continue
        if refused := refused_spec(shape.added, specs):
            plugin.fail(refused)
        else:
            specs |= shape.added
    return specs


def _check_hooks(plugin: Plugin, shape: Shape, specs: HookMethods, adds: Adds) -> None:
    methods = implemented(shape.methods, specs)
    plugin.hooks = tuple(methods)
    orphan = next((name for name in methods if name not in specs and adds(name)), None)
    if orphan:
        plugin.fail(f"has the hook '{orphan}' of the plugin '{adds(orphan)}', which is not at work")
    elif refused := first_problem(methods.values(), specs):
        plugin.fail(refused)


def _advise(plugin: Plugin, shape: Shape, specs: HookMethods) -> None:
    """Tells what is no fault, but will not be as its author thinks."""
    if not plugin.hooks:
        log.warning("plugin %s has no hooks; are its methods marked with hookimpl?", plugin.name)
    for told in deprecations(implemented(shape.methods, specs).values(), specs):
        log.warning("plugin %s: %s", plugin.name, told)


def _check_fields(plugins: Shaped, reserved: Iterable[str]) -> None:
    """Every field has a default, and of two that claim one the later is out of service."""
    owners = dict.fromkeys(reserved, "the core")
    for plugin, shape in plugins:
        if plugin.state != "active":
            continue
        if needed := next((name for name, optional in shape.fields.items() if not optional), None):
            plugin.fail(f"its request field '{needed}' has no default, which every field needs")
        elif taken := next((name for name in shape.fields if name in owners), None):
            owner = f"'{taken}' is taken by {owners[taken]}"
            plugin.fail(f"its request field {owner}; take one of them out of 'plugins'")
        else:
            owners |= dict.fromkeys(shape.fields, f"the plugin '{plugin.name}'")


def _check_requirements(plugins: Sequence[Plugin]) -> None:
    active = [plugin for plugin in plugins if plugin.state == "active"]
    provided = {service for plugin in active for service in services(plugin)}
    for plugin in active:
        if missing := plugin.about.requires - provided:
            plugin.fail(f"needs a plugin that provides '{min(missing)}', and none does")


def services(plugin: Plugin) -> set[str]:
    """What a plugin provides: itself, what it says, and what its hooks are."""
    by_hooks = {service for service, hook in PROVIDERS.items() if hook in plugin.hooks}
    return {plugin.name, *plugin.about.provides, *by_hooks}
