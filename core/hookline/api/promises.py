"""Fields that promise something: refused where no plugin keeps the promise, never ignored."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from hookline.errors import InvalidRequest
from hookline.exchange import Exchange
from hookline.plugin import Plugin

PROMISES: Mapping[str, tuple[str, tuple[Any, ...]]] = {
    "response_format": ("structured", ({"type": "text"},)),
    "tools": ("tools", ([],)),
    "tool_choice": ("tools", ("none", "auto")),
    "enable_thinking": ("thinking", (False,)),
    "thinking_budget": ("thinking", (0,)),
    "web_search": ("websearch", (False,)),
    "knowledge": ("knowledge", (False,)),
}
"""Fields of the contract: the plugin that brings each, and the values that ask for nothing."""


def refuse_unkept(undeclared: Mapping[str, Any]) -> None:
    """Raises InvalidRequest when a field that no plugin declared asks for something."""
    for name, plugin in _asked(undeclared):
        raise InvalidRequest(
            f"'{name}' needs the plugin '{plugin}', which is not active on this server.",
            param=name,
        )


def refuse_broken(plugins: Iterable[Plugin], exchange: Exchange) -> None:
    """Raises InvalidRequest when the request asks for a plugin that is out of service: what its
    fields ask for would be dropped in silence."""
    undeclared = exchange.request.model_extra or {}
    for plugin in plugins:
        if plugin.state != "failed":
            continue
        lost = [name for name in plugin.lost_fields if undeclared.get(name) not in (None, False)]
        if lost or exchange.asks_for(plugin.request_fields):
            raise InvalidRequest(
                f"This request asks for the plugin '{plugin.name}', which could not start; "
                "GET /health says why.",
                param=lost[0] if lost else None,
            )


def refuse_on_raw_prompts(undeclared: Mapping[str, Any]) -> None:
    """Raises InvalidRequest when a raw completion asks for what only a conversation can have."""
    for name, _ in _asked(undeclared):
        raise InvalidRequest(
            f"'{name}' works with /v1/chat/completions, not with raw prompts.", param=name
        )


def _asked(undeclared: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The promises that are asked for, each with its plugin."""
    for name, (plugin, nothing) in PROMISES.items():
        if name in undeclared and undeclared[name] not in nothing:
            yield name, plugin


def refuse_images(exchange: Exchange) -> None:
    """Raises InvalidRequest when no plugin took an image."""
    for place, message in enumerate(exchange.messages):
        if any(part.pixels is None for part in message.images):
            raise InvalidRequest(
                f"messages[{place}] holds an image that no plugin took. Images need the plugin "
                "'vision', which is not active on this server or failed.",
                param=f"messages[{place}].content",
            )
