"""Validation of settings, with messages that say what is wrong, where, and what was meant."""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from hookline.config.fields import decode, is_secret, item_type, may_be_path, members, submodel
from hookline.config.origins import Key, Origin, Origins
from hookline.errors import ConfigError

Model = TypeVar("Model", bound=BaseModel)

MISSING = "is required and not set"
NO_TABLE = "must be a table"
KINDS: Mapping[str, str] = {
    "bool": "must be true or false",
    "int": "must be a whole number",
    "float": "must be a number",
    "string": "must be a text",
    "list": 'must be a list, such as ["one", "another"]',
}
"""What a setting of a kind must be, in TOML's words."""


def validated(
    model: type[Model], values: Mapping[str, Any], origins: Origins, at: Key = ()
) -> Model:
    """The values as a model; ``at`` is the model's place in the settings.

    Texts from the environment become what their fields hold, relative paths absolute. Raises
    ConfigError with a line for each problem; unknown names are one unless the model allows them.
    """
    ready = _ready_table(model, values, origins, at)
    unknown = list(_unknown(model, ready, at))
    problems = [_unknown_line(key, names, origins) for key, names in unknown]
    try:
        result = model.model_validate(ready)
    except ValidationError as error:
        known = {key for key, _ in unknown}
        problems += _described(error, origins, at, known)
        raise ConfigError("\n".join(problems)) from None
    if problems:
        raise ConfigError("\n".join(problems))
    return result


def validate_plugin_table(
    name: str,
    model: type[Model],
    table: Mapping[str, Any],
    origins: Origins | None = None,
) -> Model:
    """A plugin's table, as `Settings.plugin` holds it, as the plugin's own model.

    Raises ConfigError like `load_settings`. Without ``origins`` nothing is known to come from the
    environment: texts are then taken as they are.
    """
    return validated(model, table, origins or Origins(), ("plugin", name))


def place(key: Key, origin: Origin) -> str:
    """A setting as its writer knows it: variable, flag, or table and name in a file."""
    if origin.kind in ("environment", "flag"):
        return origin.name
    *tables, name = _dotted(key)
    setting = f"[{'.'.join(tables)}] {name}" if tables else name
    return f"{origin.name}: {setting}" if origin.kind == "file" else setting


def _unknown_line(key: Key, names: Mapping[str, str], origins: Origins) -> str:
    """The line for a setting that does not exist; ``names`` do, with how they are shown."""
    origin = origins.around(key)
    meant = suggest(str(key[-1]), names)
    if meant and origin.kind == "environment":
        meant = variable((*key[:-1], meant))
    elif meant:
        meant = names[meant]
    return f"{place(key, origin)}: there is no such setting" + did_you_mean(meant)


def suggest(name: str, names: Iterable[str]) -> str | None:
    """The name that was probably meant."""
    close = difflib.get_close_matches(name, list(names), n=1)
    return close[0] if close else None


def did_you_mean(name: str | None) -> str:
    """The end of a message that offers a name."""
    return f"; did you mean {name}?" if name else ""


def variable(key: Key) -> str:
    """The environment variable of a setting."""
    return "HOOKLINE_" + "__".join(str(part).upper() for part in key)


def _dotted(key: Key) -> list[str]:
    """The parts of a key, each index joined to its list."""
    parts: list[str] = []
    for part in key:
        if isinstance(part, int) and parts:
            parts[-1] += f"[{part}]"
        else:
            parts.append(str(part))
    return parts


def _fields(model: type[BaseModel]) -> dict[str, Any]:
    """Types by the names that a table may use, aliases too."""
    types: dict[str, Any] = {}
    for name, info in model.model_fields.items():
        types[name] = (
            Annotated[(info.annotation, *info.metadata)] if info.metadata else info.annotation
        )
        if info.alias:
            types[info.alias] = types[name]
    return types


def _ready_table(
    model: type[BaseModel], values: Mapping[str, Any], origins: Origins, at: Key
) -> dict[str, Any]:
    types = _fields(model)
    return {
        name: _ready(types[name], value, origins, (*at, name)) if name in types else value
        for name, value in values.items()
    }


def _ready(annotation: Any, value: Any, origins: Origins, at: Key) -> Any:
    """A value with texts decoded and paths made absolute, as its origin demands."""
    origin = origins.of(at)
    if isinstance(value, str) and origin.kind == "environment":
        value = decode(annotation, value)
    if isinstance(value, Mapping):
        inner, item = submodel(annotation), item_type(annotation, dict)
        if inner:
            return _ready_table(inner, value, origins, at)
        return {key: _ready(item, each, origins, (*at, key)) for key, each in value.items()}
    if isinstance(value, list):
        item = item_type(annotation, list)
        return [_ready(item, each, origins, (*at, i)) for i, each in enumerate(value)]
    if isinstance(value, str) and Path in members(annotation):
        return absolute(value, origin)
    if isinstance(value, str) and value and (mark := may_be_path(annotation)):
        path = absolute(value, origin)
        return str(path) if mark.is_path(value, path) else value
    return value


def absolute(path: str, origin: Origin) -> Path:
    """A path from a source of settings, without ``~`` and relative to what its origin says."""
    # not Path's expanduser() and resolve(): the one refuses ~ of unknown users, the other follows
    # links, whose own name and folder are what is meant
    return Path(os.path.normpath((origin.folder or Path.cwd()) / os.path.expanduser(path)))  # noqa: PTH111


def _unknown(
    model: type[BaseModel], values: Mapping[str, Any], at: Key
) -> Iterator[tuple[Key, dict[str, str]]]:
    """Names the model does not have, and those it has in the same place or one table deeper."""
    types = _fields(model)
    for name, value in values.items():
        if name not in types:
            if model.model_config.get("extra") != "allow":
                yield (*at, name), _names(types, at)
        elif isinstance(value, Mapping):
            yield from _unknown_inside(types[name], value, (*at, name))


def _names(types: Mapping[str, Any], at: Key) -> dict[str, str]:
    """All names that could be meant at a place, and how a file's writer knows them."""
    tables = {name: inner for name, kind in types.items() if (inner := submodel(kind))}
    names = {
        setting: place((*at, table, setting), Origin())
        for table, inner in tables.items()
        for setting in inner.model_fields
    }
    return names | {name: f"[{name}]" if name in tables else name for name in types}


def _unknown_inside(
    annotation: Any, value: Mapping[str, Any], at: Key
) -> Iterator[tuple[Key, dict[str, str]]]:
    inner = submodel(annotation)
    if inner:
        yield from _unknown(inner, value, at)
        return
    each = submodel(item_type(annotation, dict))
    for name, table in value.items():
        if each and isinstance(table, Mapping):
            yield from _unknown(each, table, (*at, name))


def _described(error: ValidationError, origins: Origins, at: Key, known: set[Key]) -> list[str]:
    """A line for each error, without those whose places are reported already."""
    lines: dict[str, None] = {}
    for detail in error.errors():
        key = (*at, *detail["loc"])
        if key not in known:
            lines[_line(key, detail, origins)] = None
    return list(lines)


def _line(key: Key, detail: ErrorDetails, origins: Origins) -> str:
    origin, message = origins.around(key), _message(detail)
    tells_all = message in (MISSING, NO_TABLE) or any(is_secret(str(part)) for part in key)
    if not tells_all and _is_plain(detail["input"]):
        message += f", not {detail['input']!r}"
    return f"{place(key, origin)}: {message}"


def _message(detail: ErrorDetails) -> str:
    kind = detail["type"]
    if kind == "missing":
        return MISSING
    if kind in ("model_type", "model_attributes_type", "dict_type"):
        return NO_TABLE
    message = detail["msg"].removeprefix("Value error, ").replace("Input should", "must")
    wanted = KINDS.get(kind.rpartition("_")[0]) if kind.endswith(("_type", "_parsing")) else None
    return wanted or message


def _is_plain(value: Any) -> bool:
    """Whether a value is short enough to repeat in a message."""
    return isinstance(value, (str, int, float, bool)) and len(str(value)) <= 60
