"""What a request asks of the web."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, get_args

from hookline import Exchange, InvalidRequest
from hookline_websearch.links import links_in
from hookline_websearch.settings import Depth, DepthSettings, WebSearchFields, WebSearchSettings
from hookline_websearch.urls import is_web


@dataclass(frozen=True, slots=True)
class Asked:
    """How far to search, the last user message as it came, and the addresses in it."""

    depth: Depth
    limits: DepthSettings
    question: str
    links: tuple[str, ...]


def asked_of(exchange: Exchange, settings: WebSearchSettings) -> Asked | None:
    """What a chat request asks; None where it asks nothing. Raises InvalidRequest."""
    value = exchange.fields(WebSearchFields).web_search
    depth = None if value is None or value is False else depth_of(value, settings, "web_search")
    if depth is None:
        return None
    users = [message.text for message in exchange.messages if message.role == "user"]
    if not users or not users[-1].strip():
        raise InvalidRequest(
            "'web_search' searches for the last user message, which has no text here.",
            param="messages",
            code="invalid_request",
        )
    return asked_for(users[-1], depth, settings)


def asked_for(question: str, depth: Depth, settings: WebSearchSettings) -> Asked:
    """A search for an answer to a question."""
    links = tuple(filter(is_web, links_in(question)))
    return Asked(depth, settings.limits(depth), question, links)


def depth_of(value: Any, settings: WebSearchSettings, param: str, off: str = "false, ") -> Depth:
    """The depth that a value stands for. Raises InvalidRequest, which names ``off`` among what
    may be said."""
    if value is True:
        return settings.depth
    for depth in get_args(Depth):
        if value == depth:
            chosen: Depth = depth
            return chosen
    raise InvalidRequest(
        f'\'{param}\' must be true, {off}"quick", "balanced" or "deep".',
        param=param,
        code="invalid_web_search",
    )
