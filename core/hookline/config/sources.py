"""The sources of settings, and how they are put together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import platformdirs

from hookline.config.check import absolute, validated
from hookline.config.layers import (
    CONFIG_VARIABLE,
    Layer,
    environment_layer,
    file_layer,
    flags_layer,
    merged,
)
from hookline.config.origins import Key, Origins
from hookline.config.settings import DEFAULT_MODEL, Settings, is_path
from hookline.errors import ConfigError

FILE_NAME = "hookline.toml"
PLUGINS = "plugins"
"""The folder beside the configuration file whose files are plugins."""


@dataclass(frozen=True, slots=True)
class LoadedSettings:
    """Settings and the file they were read from, if there was one."""

    settings: Settings
    file: Path | None = None

    @property
    def origins(self) -> Origins:
        """Where the values came from."""
        return self.settings.origins


def load_settings(
    config: Path | None, flags: Mapping[str, Any], environ: Mapping[str, str]
) -> LoadedSettings:
    """Reads all sources: ``flags`` win over ``environ``, that over the file, that over defaults.

    ``config`` is the file that was asked for, None looks for one (see `find_config`). ``flags``
    are named like ``"server.port"``; those that are None do not count. Raises ConfigError with a
    line for each problem.
    """
    file = find_config(config, environ)
    layers = [
        file_layer(file) if file else Layer(),
        environment_layer(environ),
        flags_layer(flags),
    ]
    total = Layer()
    for layer in layers:
        total.values = merged(total.values, layer.values)
        total.origins.update(layer.origins)
        total.problems += layer.problems
    _resolve_sources(total)
    settings = _validated(total)
    settings.came_from(total.origins)
    if (
        settings.plugin_dir is None
        and file
        and (beside := file.absolute().parent / PLUGINS).is_dir()
    ):
        settings.plugin_dir = beside
    return LoadedSettings(settings, file)


def find_config(config: Path | None, environ: Mapping[str, str]) -> Path | None:
    """The configuration file: ``config``, else ``HOOKLINE_CONFIG``, else ``./hookline.toml``, else
    ``hookline.toml`` in the user's configuration folder, else none.

    Raises ConfigError where one of the first two is named and is no file.
    """
    variable = environ.get(CONFIG_VARIABLE)
    for named, by in ((config, "--config"), (variable and Path(variable), CONFIG_VARIABLE)):
        if named:
            path = named.expanduser()
            if not path.is_file():
                raise ConfigError(
                    f"{path}, named by {by}, is no file; 'hookline config init' writes one"
                )
            return path
    places = (Path(FILE_NAME), platformdirs.user_config_path("hookline") / FILE_NAME)
    return next((place for place in places if place.is_file()), None)


def _validated(total: Layer) -> Settings:
    """The settings, or all problems at once: those of the sources and those of the values."""
    try:
        settings = validated(Settings, total.values, total.origins)
    except ConfigError as error:
        raise ConfigError("\n".join([*total.problems, str(error)])) from None
    if total.problems:
        raise ConfigError("\n".join(total.problems))
    return settings


def _resolve_sources(total: Layer) -> None:
    """Makes those model sources absolute that are paths."""
    models = _tables(total.values.get("models"))
    tables: dict[Key, dict[str, Any]] = {("models", name): table for name, table in models.items()}
    if isinstance(model := total.values.get("model"), dict):
        tables["model",] = model
    for key, table in tables.items():
        source = table.get("source")
        if isinstance(source, str) and source not in models and source != DEFAULT_MODEL:
            path = absolute(source, total.origins.of((*key, "source")))
            if is_path(source) or path.exists():
                table["source"] = str(path)


def _tables(values: Any) -> dict[str, dict[str, Any]]:
    """Those of the values that are tables."""
    items = values.items() if isinstance(values, Mapping) else ()
    return {name: value for name, value in items if isinstance(value, dict)}
