"""What was found for a turn of a conversation: a loop of tool calls asks it again and again."""

from __future__ import annotations

import hashlib
import json
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from hookline import Exchange, quoted
from hookline_websearch.asking import Asked
from hookline_websearch.choosing import CountTokens
from hookline_websearch.page import Look, Page
from hookline_websearch.research import Outcome, Source

NOTE = "Found at the first message of this turn, and not searched for again."

SECONDS = 3600.0
"""Seconds that a turn may go on."""

MOST_BYTES = 32 * 2**20
"""Of texts and pictures that are kept for all turns together."""


@dataclass(frozen=True, slots=True)
class Turn:
    """A last user message with what came before it, from one caller: ``id`` is the same whatever
    comes after. ``goes_on`` is whether anything did."""

    id: str
    goes_on: bool


def turn_of(exchange: Exchange, asked: Asked) -> Turn:
    """The turn that a request belongs to."""
    messages = exchange.messages
    last = max(place for place, message in enumerate(messages) if message.role == "user")
    said = [(message.role, message.text) for message in messages[: last + 1]]
    about = json.dumps([exchange.caller.id, asked.depth, said])
    digest = hashlib.sha256(about.encode("utf-8", "surrogatepass")).hexdigest()
    return Turn(digest, goes_on=last + 1 < len(messages))


@dataclass(frozen=True, slots=True)
class Finding:
    """What was found out for a question, and how the pages look that it links to."""

    outcome: Outcome
    looks: Sequence[Look]

    def again(self) -> Finding:
        """The same, for a later message of the turn."""
        notes = [*self.outcome.notes, *([NOTE] if self.outcome.sources else [])]
        return replace(self, outcome=replace(self.outcome, seconds=0.0, notes=notes))

    def slim(self) -> Finding:
        """The same without what no prompt shows: the whole texts of pages."""
        sources = [replace(s, page=_slim(s.page) if s.page else None) for s in self.outcome.sources]
        looks = [replace(look, page=_slim(look.page)) for look in self.looks]
        return Finding(replace(self.outcome, sources=sources), looks)

    @property
    def size(self) -> int:
        """About how many bytes it takes, without the texts of pages."""
        texts = sum(len(source.text) for source in self.outcome.sources)
        return 4096 + 4 * texts + sum(len(look.screenshot) for look in self.looks)


class Turns:
    """Findings of the latest turns. One event loop only."""

    def __init__(self, most: int = MOST_BYTES, now: Callable[[], float] = time.monotonic) -> None:
        self._most = most
        self._now = now
        self._kept: OrderedDict[str, tuple[float, Finding]] = OrderedDict()

    def get(self, turn: Turn) -> Finding | None:
        """What was found at the first message of a turn that goes on."""
        begun, finding = self._kept.get(turn.id, (0.0, None))
        return finding if turn.goes_on and self._now() - begun < SECONDS else None

    def keep(self, turn: Turn, finding: Finding) -> None:
        """Keeps what was found for a turn, and forgets the oldest where it is too much. A search
        that found nothing is worth another."""
        if finding.outcome.queries and not finding.outcome.sources:
            return
        self._kept[turn.id] = (self._now(), finding.slim())
        self._kept.move_to_end(turn.id)
        sizes = sum(kept.size for _, kept in self._kept.values())
        while sizes > self._most:
            _, (_, oldest) = self._kept.popitem(last=False)
            sizes -= oldest.size


def fitting(sources: Sequence[Source], budget: int, count: CountTokens) -> list[Source]:
    """The first sources that take no more than so many tokens, so that they keep their numbers."""
    kept: list[Source] = []
    for source in sources:
        budget -= count(quoted(source.text))
        if budget < 0:
            break
        kept.append(source)
    return kept


def _slim(page: Page) -> Page:
    return replace(page, text="")
