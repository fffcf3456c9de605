"""What a request offers the model to call, checked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hookline import Exchange, InvalidRequest
from hookline_tools.settings import AllowedToolsChoice, NamedTool, Tool, ToolsFields

LONGEST_LIST = 16
NO_ARGUMENTS: Mapping[str, Any] = {"type": "object", "additionalProperties": False}

_PLAIN = {"type", "properties", "required", "title", "description", "default", "examples"}
_PLAIN |= {"$schema", "$id", "$defs", "definitions", "additionalProperties"}


@dataclass(frozen=True, slots=True)
class Offer:
    """The tools of a request.

    ``tools`` are all of them, for the prompt; ``schemas`` those that may be called, each with the
    schema of its arguments. ``required``: at least one call must come. ``parallel``: several may;
    a tool that was chosen by its name is called once.
    """

    tools: tuple[Tool, ...]
    schemas: Mapping[str, Mapping[str, Any]]
    required: bool
    parallel: bool

    def place(self, name: str) -> str:
        """Where the schema of a tool is in the request."""
        index = [tool.function.name for tool in self.tools].index(name)
        return f"tools[{index}].function.parameters"


def offer_of(exchange: Exchange) -> Offer | None:
    """What the request offers; None when nothing may be called. Raises InvalidRequest."""
    asked = exchange.fields(ToolsFields)
    if not asked.tools:
        if asked.tool_choice is not None:
            raise _wrong_choice("is only allowed together with 'tools'")
        return None
    names = [tool.function.name for tool in asked.tools]
    if twice := [name for name, count in Counter(names).items() if count > 1]:
        raise InvalidRequest(
            f"'tools': two tools have the name '{twice[0]}'; names must differ.", param="tools"
        )
    if asked.tool_choice == "none":
        return None
    chosen = _chosen(asked, names)
    schemas = {
        tool.function.name: _schema(tool, index)
        for index, tool in enumerate(asked.tools)
        if tool.function.name in chosen
    }
    parallel = asked.parallel_tool_calls and not isinstance(asked.tool_choice, NamedTool)
    return Offer(tuple(asked.tools), schemas, _is_required(asked), parallel)


def _chosen(asked: ToolsFields, names: Sequence[str]) -> Sequence[str]:
    """The names of the tools that may be called."""
    match asked.tool_choice:
        case NamedTool() as named:
            chosen = [named.function.name]
        case AllowedToolsChoice(allowed_tools=allowed):
            chosen = [tool.function.name for tool in allowed.tools]
        case _:
            return names
    if unknown := [name for name in chosen if name not in names]:
        raise _wrong_choice(f"there is no tool '{unknown[0][:100]}' among 'tools'")
    return chosen


def _is_required(asked: ToolsFields) -> bool:
    choice = asked.tool_choice
    if isinstance(choice, AllowedToolsChoice):
        return choice.allowed_tools.mode == "required"
    return choice == "required" or isinstance(choice, NamedTool)


def _schema(tool: Tool, index: int) -> Mapping[str, Any]:
    """The schema of a tool's arguments, which are an object always."""
    schema = tool.function.parameters
    if not schema:
        return NO_ARGUMENTS
    if schema.get("type", "object") != "object":
        place = f"tools[{index}].function.parameters"
        raise InvalidRequest(f"'{place}': must be a schema of type 'object'.", param=place)
    whole: Mapping[str, Any] = closed({"type": "object", **schema})
    return whole


def closed(schema: Any) -> Any:
    """A schema without properties that it does not name, in it and in the objects below.

    What matches it matches the original. A function knows nothing of other arguments, and a weak
    model never stops adding them. Objects that are put together from several schemas stay open, as
    do those that name nothing or say what else may come.
    """
    if not isinstance(schema, Mapping) or schema.keys() - _PLAIN:
        return schema
    named, required = schema.get("properties"), schema.get("required", [])
    if not isinstance(named, Mapping) or not isinstance(required, list):
        return schema
    whole = {**schema, "properties": {name: closed(value) for name, value in named.items()}}
    if not named or any(name not in list(named) for name in required):
        return whole
    return {"additionalProperties": False, **whole}


def bounded(schema: Any, text: int) -> Any:
    """A schema whose texts and lists end: where it sets no bound itself, a text has at most
    ``text`` characters, and a list sixteen items or as many as it needs.

    What matches it matches the original. Parts that are put together from several schemas, or
    stand elsewhere, stay as they are.
    """
    if not isinstance(schema, Mapping) or schema.keys() - _PLAIN - {"items", "minItems"}:
        return schema
    match schema.get("type"):
        case "string":
            return {**schema, "maxLength": text}
        case "array":
            most = max(LONGEST_LIST, schema.get("minItems", 0))
            return {"maxItems": most, **schema, **_bounded_items(schema, text)}
    named = schema.get("properties")
    if not isinstance(named, Mapping):
        return schema
    return {**schema, "properties": {name: bounded(value, text) for name, value in named.items()}}


def _bounded_items(schema: Mapping[str, Any], text: int) -> dict[str, Any]:
    return {"items": bounded(schema["items"], text)} if "items" in schema else {}


def _wrong_choice(reason: str) -> InvalidRequest:
    return InvalidRequest(f"'tool_choice': {reason}.", param="tool_choice")
