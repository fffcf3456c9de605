"""A commented ``hookline.toml``, written from the models of the settings."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined, to_jsonable_python

from hookline.config.fields import item_type, submodel
from hookline.config.origins import Key
from hookline.config.settings import Settings

ACTIVE = frozenset(
    {
        ("server", "host"),
        ("server", "port"),
        ("model", "source"),
    }
)
"""The settings that a fresh file sets; all others are commented out."""

_HEADER = """\
# Settings of Hookline. A line that begins with '#' and no space is a setting at its default, or an
# example: take the '#' away to set it. Environment variables (HOOKLINE_SERVER__PORT=1234) and the
# flags of the command line win over this file. Relative paths are relative to this file.
"""


def commented_config(plugins: Mapping[str, type[BaseModel]] | None = None) -> str:
    """The text of a fresh ``hookline.toml``: every setting with its description.

    ``plugins`` are the settings models of plugins by name. The file is valid as it is, and also
    when every setting in it is uncommented.
    """
    scalars: list[str] = []
    tables: list[str] = []
    for name, info in Settings.model_fields.items():
        if model := submodel(info.annotation):
            tables.append(_table((name,), model))
        elif model := submodel(item_type(info.annotation, dict)):
            tables.append(_example(name, model, info.description or ""))
        elif name != "plugin":
            scalars.append(_setting((name,), info))
    tables += [_table(("plugin", name), model) for name, model in (plugins or {}).items()]
    return "\n".join([_HEADER, *scalars, *tables])


def toml_value(value: Any) -> str:
    """A value in TOML. Raises TypeError for what TOML cannot hold."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (int, float)):
        return repr(value)
    if isinstance(value, (str, Path)):
        return _quoted(str(value))
    if isinstance(value, (list, tuple, set, frozenset)):
        return f"[{', '.join(map(toml_value, value))}]"
    if isinstance(value, Mapping):
        pairs = (f"{_quoted(str(key))} = {toml_value(item)}" for key, item in value.items())
        return f"{{ {', '.join(pairs)} }}" if value else "{}"
    plain = to_jsonable_python(value, fallback=_no_toml, exclude_none=True)
    return toml_value(plain) if plain is not None else _no_toml(value)


def _no_toml(value: Any) -> Any:
    raise TypeError(f"TOML has no {type(value).__name__}")


def _quoted(text: str) -> str:
    """A TOML string: JSON's escapes are TOML's, except that DEL must be escaped too."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _summary(model: type[BaseModel]) -> str:
    """The first line of a model's docstring, without the table's name."""
    first = (model.__doc__ or "").strip().partition("\n")[0]
    summary = first.partition(": ")[2] if first.startswith("``[") else first
    return summary[:1].upper() + summary[1:]


def _table(key: Key, model: type[BaseModel]) -> str:
    """The header stands uncommented: a setting below it must not slip into another table."""
    settings = [_setting((*key, name), info) for name, info in model.model_fields.items()]
    return _prose(_summary(model)) + _header(key) + "".join(settings)


def _example(name: str, model: type[BaseModel], summary: str) -> str:
    """A table whose name the user chooses, with its first setting only."""
    first, info = next(iter(model.model_fields.items()))
    prose = _prose(f"{summary} It takes what [{name.removesuffix('s')}] takes.")
    return prose + "#" + _header((name, "another")) + _setting((name, "another", first), info)


def _header(key: Key) -> str:
    return f"[{'.'.join(map(_bare, key))}]\n"


def _bare(name: str | int) -> str:
    text = str(name)
    bare = text.isascii() and text.replace("_", "").replace("-", "").isalnum()
    return text if bare else _quoted(text)


def _setting(key: Key, info: FieldInfo) -> str:
    mark = "" if key in ACTIVE else "#"
    lines = [f"{mark}{_bare(key[-1])} = {text}\n" for text in _shown(info)]
    return _prose(info.description or "") + "".join(lines)


def _shown(info: FieldInfo) -> Iterator[str]:
    """What stands behind the equals sign: the first example, or the default."""
    default = info.get_default(call_default_factory=True)
    value = info.examples[0] if info.examples else default
    if isinstance(value, Path) and value.is_relative_to(Path.home()):
        value = Path("~") / value.relative_to(Path.home())
    if isinstance(value, BaseModel):
        value = value.model_dump(mode="json", exclude_none=True)
    if value is None or value is PydanticUndefined:
        return
    yield toml_value(value)


def _prose(text: str) -> str:
    return "".join(f"# {line}\n" for line in textwrap.wrap(text, 98))
