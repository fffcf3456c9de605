"""Routes of plugins: all of a plugin's or none, and what fails in them told as that plugin's."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field

from quart import Blueprint, Quart, Response, request
from werkzeug.exceptions import InternalServerError

from hookline.api import errors
from hookline.errors import PluginError, PluginFailed
from hookline.faults import described
from hookline.kernel import Kernel
from hookline.plugin import Plugin

Route = tuple[str, str]
"""A method and a path; variables in the path have no names."""


@dataclass(slots=True)
class PluginRoutes:
    """The routes of one application, with who brought them."""

    app: Quart
    kernel: Kernel
    _owners: dict[Route, str] = field(default_factory=dict)
    _blueprints: dict[str, Plugin] = field(default_factory=dict)

    def add_all(self) -> None:
        """Adds every plugin's routes. Raises PluginError for an essential one's."""
        self._owners = dict.fromkeys(_routes(self.app), "Hookline")
        for plugin, make in list(self.kernel.plugins.routes(self.kernel)):
            self._add(plugin, make)
        self.app.register_error_handler(Exception, self._failed)
        self.app.register_error_handler(InternalServerError, self._failed)

    def _add(self, plugin: Plugin, make: Callable[[], Blueprint]) -> None:
        """One plugin's routes; whatever is wrong with them puts that plugin out of service."""
        try:
            blueprint = make()
            routes = self._checked(blueprint)
            self.app.register_blueprint(blueprint)
        except (Exception, SystemExit) as error:
            reason = f"its routes cannot be used: {described(error)}"
            if plugin.essential:
                raise PluginError(f"The essential plugin '{plugin.name}': {reason}") from error
            self.kernel.plugins.fail(plugin, reason)
        else:
            self._owners |= dict.fromkeys(routes, f"the plugin '{plugin.name}'")
            self._blueprints[blueprint.name] = plugin

    def _checked(self, blueprint: Blueprint) -> set[Route]:
        """The routes of a blueprint, found on an application that nobody asks: what is added to
        one cannot be taken away again. Raises PluginError where one of them is taken."""
        if not isinstance(blueprint, Blueprint):
            raise PluginError(f"it gives {type(blueprint).__name__}, not a Blueprint")
        if blueprint.name in self.app.blueprints:
            other = self._blueprints.get(blueprint.name)
            owner = f"the plugin '{other.name}'" if other else "Hookline"
            raise PluginError(f"a blueprint of {owner} is called '{blueprint.name}' too")
        trial = Quart("trial", static_folder=None)
        trial.register_blueprint(blueprint)
        routes = _routes(trial)
        if taken := routes & self._owners.keys():
            route = min(taken)
            raise PluginError(f"{' '.join(route)} is there already, from {self._owners[route]}")
        return routes

    async def _failed(self, error: Exception) -> Response:
        """What nobody foresaw, as OpenAI's error body; in a plugin's route it is its failure."""
        cause = getattr(error, "original_exception", None) or error
        name = request.blueprints[-1] if request.blueprints else ""
        plugin = self._blueprints.get(name)
        if plugin is None:
            return errors.unexpected(cause)
        self.kernel.plugins.isolation.route_failed(
            plugin, f"{request.method} {request.path}", cause
        )
        return errors.answer(
            PluginFailed(
                f"The plugin '{plugin.name}' failed here. The server's log has the details."
            )
        )


def _routes(app: Quart) -> set[Route]:
    """All routes of an application; a variable without a converter is a string."""
    return {
        (method, re.sub(r"<(?:(?!string:)([^<>:]*):)?[^<>]*>", r"<\1>", rule.rule))
        for rule in app.url_map.iter_rules()
        for method in (rule.methods or set()) - {"HEAD", "OPTIONS"}
    }
