"""What each source of settings says: the file, the environment, the flags."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic.fields import FieldInfo
from pydantic_settings import EnvSettingsSource

from hookline.config.check import did_you_mean, suggest, variable
from hookline.config.fields import decode, submodel
from hookline.config.origins import Key, Origin, Origins, leaves, toml_lines
from hookline.config.settings import Settings
from hookline.errors import ConfigError

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


@dataclass(slots=True)
class Layer:
    """What one source says: nested values, their origins, and what is wrong with the source."""

    values: dict[str, Any] = field(default_factory=dict)
    origins: Origins = field(default_factory=Origins)
    problems: list[str] = field(default_factory=list)


def merged(weak: Mapping[str, Any], strong: Mapping[str, Any]) -> dict[str, Any]:
    """Both, tables joined; of two values the strong one."""
    joined = dict(weak)
    for name, value in strong.items():
        under = joined.get(name)
        both = isinstance(under, Mapping) and isinstance(value, Mapping)
        joined[name] = merged(under, value) if both else value  # type: ignore[arg-type]
    return joined


# hookline.toml


def file_layer(file: Path) -> Layer:
    """What a file sets. Raises ConfigError where it cannot be read as TOML."""
    text = _read(file)
    try:
        values = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(_syntax(file, text, error)) from None
    folder = file.absolute().parent
    lines = toml_lines(text)
    places = {key: Origin("file", f"{file}:{line}", folder) for key, line in lines.items()}
    set_here = [key for key, value in leaves(values) if value != {}]
    single = {key: places.get(key) or _above(places, key) for key in set_here}
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


def environment_layer(environ: Mapping[str, str]) -> Layer:
    """What ``HOOKLINE_…`` variables set; those that name no setting are problems."""
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


def flags_layer(flags: Mapping[str, Any]) -> Layer:
    """What flags set, named like ``"server.port"``; those that are None do not count."""
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
