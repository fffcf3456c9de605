"""What the fields of a settings model accept."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel, SecretBytes, SecretStr

MASK = "********"
"""What stands for a secret in everything that is shown."""

_SECRET = re.compile(
    r"(^|[_-])(api_?key|key|secret|password|passphrase|token|credentials?|authorization|cookie)s?$",
    re.IGNORECASE,
)
_URL_PASSWORD = re.compile(r"(?<=://)([^/@\s:]*):([^/@\s]+)@")


def members(annotation: Any) -> Iterator[Any]:
    """The alternatives of a type, without ``Annotated`` and unions around them."""
    if get_origin(annotation) is Annotated:
        yield from members(get_args(annotation)[0])
    elif get_origin(annotation) in (Union, UnionType):
        for member in get_args(annotation):
            yield from members(member)
    else:
        yield annotation


@dataclass(frozen=True, slots=True)
class MayBePath:
    """Marks a text setting, in ``Annotated``, that holds a path or something else. Relative paths
    become absolute like those of `Path` settings; ``is_path`` tells, of the text and of what it
    would be as an absolute path, whether it is one."""

    is_path: Callable[[str, Path], bool]


def may_be_path(annotation: Any) -> MayBePath | None:
    """The mark of a setting's type."""
    if get_origin(annotation) is Annotated:
        _, *marks = get_args(annotation)
        return next((mark for mark in marks if isinstance(mark, MayBePath)), None)
    return None


def submodel(annotation: Any) -> type[BaseModel] | None:
    """The model among a type's alternatives."""
    for member in members(annotation):
        if isinstance(member, type) and issubclass(member, BaseModel):
            return member
    return None


def item_type(annotation: Any, container: type) -> Any:
    """What a ``list`` or ``dict`` among a type's alternatives holds; None when there is none."""
    for member in members(annotation):
        if member is container:
            return Any
        if get_origin(member) is container:
            return get_args(member)[-1]
    return None


def accepts_text(annotation: Any) -> bool:
    """Whether a text is a valid value as it stands."""
    return any(
        member in (str, Any, Path, SecretStr, SecretBytes)
        or (get_origin(member) is Literal and any(isinstance(x, str) for x in get_args(member)))
        for member in members(annotation)
    )


def decode(annotation: Any, text: str) -> Any:
    """A variable's text as a value for a field: JSON for tables and lists, or a comma list.

    A text that is neither stays as it is, for the validation to say what is wrong with it.
    """
    holds_list = item_type(annotation, list) is not None
    holds_table = submodel(annotation) or item_type(annotation, dict) is not None
    begins = text.lstrip()[:1]
    if (holds_list and begins == "[") or (holds_table and begins == "{"):
        return _json_or_text(text)
    if accepts_text(annotation):
        return text
    if holds_list:
        return [item.strip() for item in text.split(",") if item.strip()]
    return _json_or_text(text)


def _json_or_text(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def is_secret(name: str, annotation: Any = None) -> bool:
    """Whether a setting's value must not be shown, by its type or its name."""
    by_type = any(member in (SecretStr, SecretBytes) for member in members(annotation))
    return by_type or _SECRET.search(name) is not None


def masked(name: str, value: Any, annotation: Any = None) -> Any:
    """A value as it may be shown: secrets, also inside tables and in URLs, are covered."""
    if isinstance(value, (SecretStr, SecretBytes)):
        return MASK
    if isinstance(value, Mapping):
        return {key: masked(str(key), item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [masked(name, item, annotation) for item in value]
    if not isinstance(value, str) or not value:
        return value
    return MASK if is_secret(name, annotation) else _URL_PASSWORD.sub(rf"\1:{MASK}@", value)
