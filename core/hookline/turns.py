"""Turns of a conversation: a loop of tool calls sends the same question again and again."""

from __future__ import annotations

import hashlib
import json
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from hookline.exchange import Exchange
from hookline.messages import Message

Finding = TypeVar("Finding")

SECONDS = 3600.0
"""Seconds that a turn may go on."""


@dataclass(frozen=True, slots=True)
class Turn:
    """A last user message with what came before it, from one caller: ``id`` is the same whatever
    comes after. ``goes_on`` is whether anything did."""

    id: str
    goes_on: bool


def turn_of(exchange: Exchange, *about: str) -> Turn:
    """The turn that a request belongs to, for one who is asked the same ``about`` it.

    To be called in `admit`, before others add to the conversation, which has a user message.
    """
    messages = exchange.messages
    last = max(place for place, message in enumerate(messages) if message.role == "user")
    said = [_said(message) for message in messages[: last + 1]]
    text = json.dumps([exchange.caller.id, about, said])
    digest = hashlib.sha256(text.encode()).hexdigest()
    return Turn(digest, goes_on=last + 1 < len(messages))


def _said(message: Message) -> list[str]:
    return [message.role, message.text, *(image.image_url.url for image in message.images)]


class Turns(Generic[Finding]):
    """What was found for the latest turns, ``most`` bytes of it. One event loop only."""

    def __init__(self, most: int, now: Callable[[], float] = time.monotonic) -> None:
        self._most = most
        self._now = now
        self._kept: OrderedDict[str, tuple[float, int, Finding]] = OrderedDict()

    def get(self, turn: Turn) -> Finding | None:
        """What was kept at the first message of a turn that goes on."""
        kept = self._kept.get(turn.id)
        if kept is None or not turn.goes_on:
            return None
        begun, _, finding = kept
        return finding if self._now() - begun < SECONDS else None

    def keep(self, turn: Turn, finding: Finding, size: int) -> None:
        """Keeps what was found for a turn, about ``size`` bytes, and forgets the oldest where it is
        too much."""
        self._kept[turn.id] = (self._now(), size, finding)
        self._kept.move_to_end(turn.id)
        sizes = sum(size for _, size, _ in self._kept.values())
        while sizes > self._most:
            _, (_, oldest, _) = self._kept.popitem(last=False)
            sizes -= oldest
