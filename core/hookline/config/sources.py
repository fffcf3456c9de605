"""The sources of settings, and how they are put together."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import platformdirs
from pydantic.fields import FieldInfo
from pydantic_settings import EnvSettingsSource

from hookline.config.check import (
    absolute,
    did_you_mean,
    suggest,
    validated,
    variable,
)
from hookline.config.fields import decode, submodel
from hookline.config.origins import Key, Origin, Origins, leaves, toml_lines
from hookline.config.settings import DEFAULT_MODEL, Settings, is_path
from hookline.errors import ConfigError

FILE_NAME = "hookline.toml"
PREFIX = "HOOKLINE_"
CONFIG_VARIABLE = "HOOKLINE_CONFIG"
"""Names the configuration file."""

OTHER_VARIABLES = frozenset({CONFIG_VARIABLE, "HOOKLINE_KEY"})
"""Variables that are no settings: the file's, and the one from which the examples take a client's
key. Every other unknown one is refused."""

FLAGS: Mapping[str, str] = {
    "server.host": "--host",
    "server.port": "--port",
    "model.source": "--model",
}
"""The flags of settings, for messages; others are called after the setting."""


@dataclass(frozen=True, slots=True)
class LoadedSettings:
    """Settings and the file they were read from, if there was one."""

    settings: Settings
    file: Path | None = None

    @property
    def origins(self) -> Origins:
        """Where the values came from."""
        return self.settings.origins


@dataclass(slots=True)
class Layer:
    """What one source says: nested values, their origins, and what is wrong with the source."""

    values: dict[str, Any] = field(default_factory=dict)
    origins: Origins = field(default_factory=Origins)
    problems: list[str] = field(default_factory=list)


def load_settings(
    config: Path | None, flags: Mapping[str, Any], environ: Mapping[str, str]
) -> LoadedSettings:
    """Reads all sources: ``flags`` win over ``environ``, that over the file, that over defaults.

    ``config`` is the file that was asked for, None looks for one (see `find_config`). ``flags``
    are named like ``"server.port"``; those that are None do not count. Raises ConfigError with a
    line for each problem.
    """
    file = find_config(config, environ)
    layers = [_file_layer(file) if file else Layer(), _environment(environ), _flags(flags)]
    merged = Layer()
    for layer in layers:
        merged.values = _merged(merged.values, layer.values)
        merged.origins.update(layer.origins)
        merged.problems += layer.problems
    _resolve_sources(merged)
    settings = _validated(merged)
    settings.came_from(merged.origins)
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


def _validated(merged: Layer) -> Settings:
    """The settings, or all problems at once: those of the sources and those of the values."""
    try:
        settings = validated(Settings, merged.values, merged.origins)
    except ConfigError as error:
        raise ConfigError("\n".join([*merged.problems, str(error)])) from None
    if merged.problems:
        raise ConfigError("\n".join(merged.problems))
    return settings


def _merged(weak: Mapping[str, Any], strong: Mapping[str, Any]) -> dict[str, Any]:
    """Both, tables joined; of two values the strong one."""
    merged = dict(weak)
    for name, value in strong.items():
        under = merged.get(name)
        both = isinstance(under, Mapping) and isinstance(value, Mapping)
        merged[name] = _merged(under, value) if both else value  # type: ignore[arg-type]
    return merged


# hookline.toml


def _file_layer(file: Path) -> Layer:
    text = _read(file)
    try:
        values = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(_syntax(file, text, error)) from None
    folder = file.absolute().parent
    lines = toml_lines(text)
    places = {key: Origin("file", f"{file}:{line}", folder) for key, line in lines.items()}
    single = {key: places.get(key) or _above(places, key) for key, _ in leaves(values)}
    return Layer(values, Origins(single, places))


def _above(places: Mapping[Key, Origin], key: Key) -> Origin:
    return places[next(key[:end] for end in range(len(key), 0, -1) if key[:end] in places)]


def _read(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise ConfigError(f"{file}: byte {error.start} is not UTF-8, which TOML must be") from None
    except OSError as error:
        raise ConfigError(f"{file} cannot be read: {error.strerror}") from None


def _syntax(file: Path, text: str, error: tomllib.TOMLDecodeError) -> str:
    """One line with file, line and column, the columns counted from 1."""
    message = str(error)
    found = re.search(r" \(at line (\d+), column (\d+)\)$", message)
    if found:
        return f"{file}:{found[1]}:{found[2]}: {message[: found.start()]}"
    last = text.removesuffix("\n").split("\n")
    message = message.removesuffix(" (at end of document)")
    return f"{file}:{len(last)}:{len(last[-1]) + 1}: {message} (the file ends here)"


# The environment


class _Environment(EnvSettingsSource):
    """Reads ``HOOKLINE_SERVER__PORT`` and its like from a mapping; lists may be comma lists."""

    def __init__(self, variables: Mapping[str, str]) -> None:
        super().__init__(Settings)
        self.env_vars = variables

    def decode_complex_value(self, field_name: str, field: FieldInfo | None, value: Any) -> Any:
        """JSON or a comma list; what is neither stays a text, which validation then refuses."""
        return decode(field.annotation, value) if field else value


def _environment(environ: Mapping[str, str]) -> Layer:
    ours = {name: name.lower() for name in environ if name.upper().startswith(PREFIX)}
    ours = {name: low for name, low in ours.items() if name.upper() not in OTHER_VARIABLES}
    names = {_variable_key(low): name for name, low in ours.items()}
    values = _Environment({low: environ[name] for name, low in ours.items()})()
    origins = {key: Origin("environment", _nearest_name(names, key)) for key, _ in leaves(values)}
    unknown = [name for key, name in names.items() if key[0] not in Settings.model_fields]
    return Layer(values, Origins(origins), [_unknown_variable(name) for name in unknown])


def _variable_key(low: str) -> Key:
    return tuple(low.removeprefix(PREFIX.lower()).split("__"))


def _nearest_name(names: Mapping[Key, str], key: Key) -> str:
    return next(names[key[:end]] for end in range(len(key), 0, -1) if key[:end] in names)


def _unknown_variable(name: str) -> str:
    meant = suggest(name.upper(), [*OTHER_VARIABLES, *map(variable, _setting_keys())])
    return f"{name}: there is no such setting" + did_you_mean(meant)


def _setting_keys() -> Iterator[Key]:
    for name, info in Settings.model_fields.items():
        model = submodel(info.annotation)
        if model:
            yield from ((name, inner) for inner in model.model_fields)
        else:
            yield (name,)


# Flags


def _flags(flags: Mapping[str, Any]) -> Layer:
    layer = Layer()
    for dotted, value in flags.items():
        if value is not None:
            *tables, name = dotted.split(".")
            table = layer.values
            for part in tables:
                table = table.setdefault(part, {})
            table[name] = value
            flag = FLAGS.get(dotted) or "--" + name.replace("_", "-")
            layer.origins.values[(*tables, name)] = Origin("flag", flag)
    return layer


# Model sources


def _resolve_sources(merged: Layer) -> None:
    """Makes those model sources absolute that are paths."""
    models = _tables(merged.values.get("models"))
    tables: dict[Key, dict[str, Any]] = {("models", name): table for name, table in models.items()}
    if isinstance(model := merged.values.get("model"), dict):
        tables["model",] = model
    for key, table in tables.items():
        source = table.get("source")
        if isinstance(source, str) and source not in models and source != DEFAULT_MODEL:
            path = absolute(source, merged.origins.of((*key, "source")))
            if is_path(source) or path.exists():
                table["source"] = str(path)


def _tables(values: Any) -> dict[str, dict[str, Any]]:
    """Those of the values that are tables."""
    items = values.items() if isinstance(values, Mapping) else ()
    return {name: value for name, value in items if isinstance(value, dict)}
