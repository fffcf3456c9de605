"""One tag a parameter, as Qwen's coder models write it.

A text is written as it is; everything else, and a text that must match a pattern, a length or a
format, as JSON.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from hookline_tools.arguments import Say
from hookline_tools.format import ToolFormat
from hookline_tools.reading import Reading, Text

END = "\n</parameter>\n"
_ANNOTATIONS = {"title", "description", "default", "examples", "$schema", "$comment", "$id"}
_DEFINITIONS = ("$defs", "definitions")
_ROOT = {"type", "properties", "required", "additionalProperties", *_DEFINITIONS} | _ANNOTATIONS


class TaggedArguments:
    """``<parameter=name>`` and the value, for each argument, in the order of the schema."""

    def tree(self, schema: Mapping[str, Any]) -> Any:
        """One part for each property. Raises ValueError where it takes more than properties."""
        if unknown := schema.keys() - _ROOT:
            raise ValueError(f"'{min(unknown)}' cannot be used beside properties in this format")
        definitions = {key: schema[key] for key in _DEFINITIONS if key in schema}
        properties, required = schema.get("properties", {}), schema.get("required", [])
        if not isinstance(properties, Mapping) or not isinstance(required, list):
            raise ValueError("'properties' must be an object and 'required' a list")
        if missing := [name for name in required if name not in list(properties)]:
            raise ValueError(f"{missing[0]!r} is required and is no property")
        parts = []
        for name, value in properties.items():
            part = [f"<parameter={_checked(name)}>\n", *_value(value, definitions)]
            parts.append(part if name in required else {"optional": part})
        return parts

    def read(self, text: Text, schema: Mapping[str, Any], say: Say) -> Reading[None]:
        """Says the object that the parameters make."""
        properties = schema.get("properties", {})
        before = "{"
        while (yield from text.peek("<parameter=", "</function>")) == "<parameter=":
            yield from text.literal("<parameter=")
            name: list[str] = []
            yield from text.until(">\n", name.append)
            key = "".join(name)
            say(f"{before}{json.dumps(key, ensure_ascii=False)}: ")
            yield from self._read_value(text, _is_text(properties[key]), say)
            before = ", "
        say("}" if before == ", " else "{}")

    def _read_value(self, text: Text, is_text: bool, say: Say) -> Reading[None]:
        if not is_text:
            yield from text.until(END, say)
            return
        say('"')
        yield from text.until(END, lambda piece: say(json.dumps(piece, ensure_ascii=False)[1:-1]))
        say('"')


def _value(schema: Any, definitions: Mapping[str, Any]) -> list[Any]:
    if not _is_text(schema):
        whole = {**definitions, **schema} if isinstance(schema, Mapping) else schema
        return [{"schema": whole}, END]
    if values := _values(schema):
        return [{"any": [*values]}, END]
    return [{"until": END}]


def _is_text(schema: Any) -> bool:
    """Whether a value is text that is free or one of a few."""
    if not isinstance(schema, Mapping) or schema.keys() - {"type", "enum", "const"} - _ANNOTATIONS:
        return False
    if not isinstance(schema.get("enum", []), list):
        return False
    values = _values(schema)
    if any(not isinstance(value, str) or not value or END in value for value in values):
        return False
    return bool(schema.get("type", "string" if values else None) == "string")


def _values(schema: Mapping[str, Any]) -> list[Any]:
    return [schema["const"]] if "const" in schema else list(schema.get("enum", ()))


def _checked(name: str) -> str:
    if not name or any(character in "<>\n\r" for character in name):
        raise ValueError(f"the property {name!r} cannot be written in this format")
    return name


QWEN_CODER = ToolFormat(
    name="qwen-coder",
    marks=("tools", "<tool_call>", "<function=", "<parameter="),
    trigger="<tool_call>",
    before_name="<tool_call>\n<function=",
    after_name=">\n",
    end="</function>\n</tool_call>",
    separator="\n",
    arguments=TaggedArguments(),
)
