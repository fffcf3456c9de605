"""Text that is free until a tag opens a constrained part: how models call tools.

The value of such a constraint is a mapping::

    {"tags": [{"begin": "<tool_call>", "schema": {…}, "end": "</tool_call>"}],
     "required": false, "repeat": true, "text": true}

``begin`` opens a part, which then follows ``schema``, ``regex`` or, with neither, is empty, up to
``end``. Tags may share the same ``begin``. ``required``: at least one part comes; ``repeat``: more
than one may, else the answer ends with the first; ``text``: free text may stand before, between
and after them.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from hookline_structured.dialect import Schema
from hookline_structured.options import json_options
from hookline_structured.pattern import NotRegular, translate
from hookline_structured.refusal import Place, Refused


@dataclass(frozen=True, slots=True)
class Tag:
    """One kind of part; ``schema`` or ``regex``, or neither."""

    begin: str
    end: str
    schema: Any = None
    regex: str | None = None


@dataclass(frozen=True, slots=True)
class Tagged:
    """A tagged constraint that was read."""

    tags: tuple[Tag, ...]
    required: bool
    repeat: bool
    text: bool

    def source(self, schemas: dict[int, Schema], *, compact: bool) -> str:
        """A grammar for it; ``schemas`` are the rewritten schemas by the place of their tag."""
        rules = [f"start: {self._start()}"]
        begins = list(dict.fromkeys(tag.begin for tag in self.tags))
        rules.append("part: " + " | ".join(f"part_{i}" for i in range(len(begins))))
        for index, begin in enumerate(begins):
            bodies = [f"body_{i}" for i, tag in enumerate(self.tags) if tag.begin == begin]
            head = json.dumps(begin)
            if self.text:
                rules.append(f"head_{index}[lazy]: TEXT {head}")
                head = f"head_{index}"
            rules.append(f"part_{index}: {head} ({' | '.join(bodies)})")
        for index, tag in enumerate(self.tags):
            body = _body(tag, schemas.get(index), compact=compact)
            rules.append(f"body_{index}: {body} {json.dumps(tag.end) if tag.end else ''}")
        if self.text:
            rules.append(r"TEXT: /(.|\n)*/")
        return "%llguidance {}\n" + "\n".join(rules) + "\n"

    def _start(self) -> str:
        if self.repeat:
            parts = "part+" if self.required else "part*"
            return f"{parts} TEXT" if self.text else parts
        if self.required:
            return "part"
        return "part | TEXT" if self.text else "part?"


def _body(tag: Tag, schema: Schema | None, *, compact: bool) -> str:
    if tag.regex is not None:
        return f"/{_slashes(translate(tag.regex))}/"
    if schema is None:
        return '""'
    if schema is True:
        schema = {}
    options = json_options(compact=compact)
    return "%json " + json.dumps({"x-guidance": options, **dict(schema or {"not": {}})})


def _slashes(pattern: str) -> str:
    return pattern.replace("/", r"\/")


def read_tagged(value: Any) -> Tagged:
    """The constraint that a plugin asks for. Raises Refused."""
    if not isinstance(value, dict) or not isinstance(value.get("tags"), list) or not value["tags"]:
        raise Refused((), "must be a mapping with a list of 'tags'")
    tags = tuple(_tag(tag, ("tags", index)) for index, tag in enumerate(value["tags"]))
    flags = {"required": False, "repeat": True, "text": True}
    for name in flags.keys() & value.keys():
        if not isinstance(value[name], bool):
            raise Refused((name,), "must be a boolean")
        flags[name] = value[name]
    if unknown := value.keys() - {"tags", *flags}:
        raise Refused((min(unknown),), "is not known")
    return Tagged(tags, **flags)


def _tag(value: Any, place: Place) -> Tag:
    if not isinstance(value, dict) or unknown_keys(value):
        raise Refused(place, "must be a mapping of 'begin', 'end', and 'schema' or 'regex'")
    for key in ("begin", "end", "regex"):
        if not isinstance(value.get(key, ""), str):
            raise Refused((*place, key), "must be a string")
    if not value.get("begin"):
        raise Refused((*place, "begin"), "must not be empty")
    if value.get("regex") is not None and "schema" in value:
        raise Refused(place, "has a schema and a regex; one of them, please")
    try:
        translate(value.get("regex") or "")
    except NotRegular as error:
        raise Refused((*place, "regex"), str(error)) from error
    return Tag(value["begin"], value.get("end", ""), value.get("schema"), value.get("regex"))


def unknown_keys(value: dict[str, Any]) -> set[str]:
    """Keys that mean nothing in a tag."""
    return value.keys() - {"begin", "end", "schema", "regex"}
