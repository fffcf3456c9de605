"""Calls and results of earlier turns, as the model's chat template wants them."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from hookline import InvalidRequest, Message, ToolCall
from hookline_tools.format import ToolFormat

_TAKES_MAPPINGS = re.compile(
    r"""arguments['"\]]*\s*(?:\|\s*(?:tojson|items|dictsort)|\.items\(|is\s+(?:string|mapping))"""
    r"""|(?:function|call)['"\]]*\s*\|\s*tojson"""
)


def takes_mappings(template: str) -> bool:
    """Whether a chat template writes arguments as JSON itself, or takes them as JSON text."""
    return _TAKES_MAPPINGS.search(template) is not None


def for_template(messages: Sequence[Message], form: ToolFormat, template: str) -> list[Message]:
    """The conversation with calls and results in the template's way. Raises InvalidRequest."""
    if not any(message.tool_calls or message.role == "tool" for message in messages):
        return list(messages)
    if not form.native:
        return list(_as_text(messages, form))
    return _native(messages, form, mappings=takes_mappings(template))


def _native(messages: Sequence[Message], form: ToolFormat, *, mappings: bool) -> list[Message]:
    names = {call.id: call.function.name for m in messages for call in m.tool_calls or ()}
    result = []
    for place, message in enumerate(messages):
        changes: dict[str, Any] = {}
        if message.tool_calls:
            changes["tool_calls"] = [
                _call(call, _arguments(call, place, index, mappings=mappings), form)
                for index, call in enumerate(message.tool_calls)
            ]
        if message.role == "tool":
            changes["name"] = message.name or names.get(message.tool_call_id or "")
            changes["tool_call_id"] = _short(message.tool_call_id or "", form.id_length)
        result.append(message.model_copy(update=changes) if changes else message)
    return result


def _call(call: ToolCall, arguments: str | dict[str, Any], form: ToolFormat) -> ToolCall:
    function = call.function.model_copy(update={"arguments": arguments})
    changes = {"id": _short(call.id, form.id_length), "function": function}
    return call.model_copy(update=changes)


def _arguments(call: ToolCall, message: int, index: int, *, mappings: bool) -> str | dict[str, Any]:
    arguments = call.function.arguments
    if not mappings:
        return arguments if isinstance(arguments, str) else _json(arguments)
    if not isinstance(arguments, str):
        return arguments
    try:
        value = json.loads(arguments or "{}")
    except ValueError:
        value = None
    if not isinstance(value, dict):
        place = f"messages[{message}].tool_calls[{index}].function.arguments"
        raise InvalidRequest(f"'{place}': must be a JSON object.", param=place)
    return value


def _short(name: str, length: int | None) -> str:
    """An id of letters and digits of the right length; the same for the same id."""
    if length is None or (len(name) == length and name.isalnum()):
        return name
    return hashlib.sha256(name.encode(errors="replace")).hexdigest()[:length]


def _as_text(messages: Sequence[Message], form: ToolFormat) -> Iterator[Message]:
    """Calls as the model wrote them, results as what the user said next."""
    results: list[str] = []
    for message in messages:
        if message.role == "tool":
            results.append(f"<tool_response>\n{message.text}\n</tool_response>")
            continue
        if results:
            yield Message(role="user", content="\n".join(results))
            results = []
        yield _with_calls_as_text(message, form) if message.tool_calls else message
    if results:
        yield Message(role="user", content="\n".join(results))


def _with_calls_as_text(message: Message, form: ToolFormat) -> Message:
    calls = [
        (call.function.name, _text(call.function.arguments)) for call in message.tool_calls or ()
    ]
    content = "\n".join(filter(None, [message.text, form.write(calls)]))
    return message.model_copy(update={"content": content, "tool_calls": None})


def _text(arguments: str | Mapping[str, Any]) -> str:
    return arguments if isinstance(arguments, str) else _json(arguments)


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
