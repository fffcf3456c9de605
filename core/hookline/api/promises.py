"""Fields that promise something: refused where no plugin keeps the promise, never ignored."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hookline.errors import InvalidRequest
from hookline.exchange import Exchange

PROMISES = {
    "response_format": "structured",
    "tools": "tools",
    "tool_choice": "tools",
    "enable_thinking": "thinking",
    "thinking_budget": "thinking",
    "web_search": "websearch",
    "knowledge": "knowledge",
}
"""Fields of the contract, and the plugin that brings each."""

OFF: tuple[Any, ...] = (None, False, [], {}, "none", "auto", {"type": "text"})
"""Values that ask for nothing."""


def refuse_unkept(undeclared: Mapping[str, Any]) -> None:
    """Raises InvalidRequest when a field that no plugin declared asks for something."""
    for name, plugin in PROMISES.items():
        if undeclared.get(name) not in OFF:
            raise InvalidRequest(
                f"'{name}' needs the plugin '{plugin}', which is not active on this server.",
                param=name,
            )


def refuse_on_raw_prompts(undeclared: Mapping[str, Any]) -> None:
    """Raises InvalidRequest when a raw completion asks for what only a conversation can have."""
    for name in PROMISES:
        if undeclared.get(name) not in OFF:
            raise InvalidRequest(
                f"'{name}' works with /v1/chat/completions, not with raw prompts.", param=name
            )


def refuse_images(exchange: Exchange) -> None:
    """Raises InvalidRequest when no plugin took an image."""
    for place, message in enumerate(exchange.messages):
        if message.images:
            raise InvalidRequest(
                f"messages[{place}] holds an image, which needs the plugin 'vision'; it is not "
                "active on this server.",
                param=f"messages[{place}].content",
            )
