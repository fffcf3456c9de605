"""What stays in a prompt whatever is left out, in tokens: passages have the room beside it."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence

from pydantic_core import to_jsonable_python

from hookline.exchange import Exchange
from hookline.messages import Message

SYSTEM = ("system", "developer")
TOOLS_FRAME_TOKENS = 128
"""For what is written around the descriptions of tools."""

IMAGE_TOKENS = 512
"""For a picture that stays; how many it will really take is not known before it is decoded."""

CountTokens = Callable[[str], int]
"""How many tokens of the model a text is."""


def staying_tokens(exchange: Exchange, count: CountTokens) -> int:
    """Tokens of the system messages, the last user message and all that follows it, and of tools.

    Tools are written into the prompt by another plugin, which may already have added them to the
    system message, or will do so. Pictures are estimated.
    """
    messages = exchange.messages
    said = _system(getattr(exchange.request, "messages", messages))
    system = max(count(_system(messages)), count(said) + _tools(exchange, count))
    last = max((i for i, each in enumerate(messages) if each.role == "user"), default=0)
    stay = [each for each in messages[last:] if each.role not in SYSTEM]
    calls = [call.model_dump_json() for each in stay for call in each.tool_calls or ()]
    images = sum(len(each.images) for each in stay)
    return system + count("\n".join([*(m.text for m in stay), *calls])) + IMAGE_TOKENS * images


def _system(messages: Sequence[Message]) -> str:
    return "\n".join(each.text for each in messages if each.role in SYSTEM)


def _tools(exchange: Exchange, count: CountTokens) -> int:
    """Tokens of the tools that a request brings."""
    tools = getattr(exchange.request, "tools", None)
    if not tools or getattr(exchange.request, "tool_choice", None) == "none":
        return 0
    return count(json.dumps(to_jsonable_python(tools, exclude_none=True))) + TOOLS_FRAME_TOKENS
