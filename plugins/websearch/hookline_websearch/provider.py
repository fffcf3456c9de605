"""What finds addresses for a query."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import date
from typing import Literal, Protocol

TimeRange = Literal["day", "month", "year"]


@dataclass(frozen=True, slots=True)
class Query:
    """What to look for.

    ``language`` is a code such as ``de``, ``pt-BR``, ``all`` or ``auto``. ``time_range`` asks for
    pages of that time only. ``seconds`` is the time after which the answer is no
    longer waited for.
    """

    text: str
    language: str = "auto"
    time_range: TimeRange | None = None
    seconds: float = 5.0


@dataclass(frozen=True, slots=True)
class Hit:
    """One address that a provider found, with what it says about the page.

    ``places`` are the ranks, counted from 1, that each engine behind the provider gave it.
    """

    url: str
    title: str = ""
    snippet: str = ""
    date: date | None = None
    places: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Hits:
    """What a provider found for one query, best first; ``notes`` say what did not work."""

    hits: list[Hit] = field(default_factory=list)
    notes: tuple[str, ...] = ()


class ProviderError(Exception):
    """A provider cannot answer; ``str(error)`` is a sentence for the client."""


class SearchProvider(Protocol):
    """A search engine, or something in front of several.

    ``name`` is how ``[plugin.websearch] providers`` calls it.
    """

    @property
    def name(self) -> str:
        """Its name in the settings and in messages."""
        ...

    async def search(self, query: Query) -> Hits:
        """Looks for pages. Raises ProviderError, or any error, where it cannot."""
        ...
