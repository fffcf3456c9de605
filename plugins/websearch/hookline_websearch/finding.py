"""What was found for a message, for as long as its turn goes on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from hookline import quoted
from hookline_websearch.choosing import CountTokens
from hookline_websearch.page import Look, Page
from hookline_websearch.research import Outcome, Source

NOTE = "Found at the first message of this turn, and not searched for again."


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
    def is_in_vain(self) -> bool:
        """Whether a search found nothing, so that another is worth trying."""
        return bool(self.outcome.queries) and not self.outcome.sources

    @property
    def size(self) -> int:
        """About how many bytes it takes, without the texts of pages."""
        texts = sum(len(source.text) for source in self.outcome.sources)
        return 4096 + 4 * texts + sum(len(look.screenshot) for look in self.looks)


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
