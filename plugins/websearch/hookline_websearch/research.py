"""One search from queries to passages: search, read, choose, perhaps once more."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from hookline import Embedder, in_line
from hookline_websearch.choosing import Candidate, CountTokens, choose
from hookline_websearch.merging import at_most
from hookline_websearch.page import Page
from hookline_websearch.passages import Passage
from hookline_websearch.provider import Hit, Query, SearchProvider, TimeRange
from hookline_websearch.reading import Reads, read_some
from hookline_websearch.searching import search
from hookline_websearch.settings import DepthSettings
from hookline_websearch.stopwatch import Stopwatch
from hookline_websearch.urls import canonical, site_of

SEARCHING = 0.65
"""Share of a round's time after which search providers are no longer waited for."""

CHOOSING = 0.15
"""Share of the whole time that is kept for choosing."""

MEANING = 0.25
"""Share of the whole time that comparing by meaning may take."""

URL_MAX = 200
"""Characters of an address in a note."""

Report = Callable[[str, str], None]
"""Told the step and a detail for people."""

Further = Callable[[str, Sequence[str]], Awaitable[Sequence[str]]]
"""Further queries, from what was found so far and the queries that found it."""


@dataclass(frozen=True, slots=True)
class Task:
    """What to find out.

    ``question`` is the user's; ``queries`` may be none where only ``links`` are to be read, which
    always come first. ``budget`` are the tokens of all passages together.
    """

    question: str
    queries: Sequence[str]
    limits: DepthSettings
    budget: int
    links: Sequence[str] = ()
    language: str = "auto"
    time_range: TimeRange | None = None
    per_site: int = 2


@dataclass(frozen=True, slots=True)
class Source:
    """A page with the passages chosen from it, best first; what the search said of it where it is
    None."""

    hit: Hit
    page: Page | None
    passages: Sequence[Passage]

    @property
    def text(self) -> str:
        """All passages as they follow each other on the page."""
        in_order = sorted(self.passages, key=lambda passage: passage.place)
        return "\n\n…\n\n".join(passage.whole for passage in in_order)


@dataclass(slots=True)
class Outcome:
    """What was found out, and how."""

    sources: list[Source] = field(default_factory=list)
    queries: list[str] = field(default_factory=list)
    pages_read: int = 0
    notes: list[str] = field(default_factory=list)
    seconds: float = 0.0


@dataclass(slots=True)
class _Found:
    """Hits in order of the search, with the pages that were read of them; ``answers`` are whether
    each round was answered, and with hits."""

    hits: dict[str, Hit] = field(default_factory=dict)
    pages: dict[str, Page] = field(default_factory=dict)
    answers: list[tuple[bool, bool]] = field(default_factory=list)

    def candidates(self) -> list[tuple[Hit, Page | None]]:
        """Every hit with something to quote. A page without text is none: what the search says of
        it must not go under the address that it redirects to."""
        read = {key: page for key, page in self.pages.items() if page.text}
        both = [(hit, read.get(key)) for key, hit in self.hits.items()]
        return [(hit, page) for hit, page in both if _text(hit, page)]

    def read(self) -> int:
        """How many pages have text."""
        return sum(bool(page.text) for page in self.pages.values())

    def trouble(self) -> Iterator[str]:
        """Sentences where nothing at all was found, or none of it could be read."""
        if (True, False) in self.answers and not any(hits for _, hits in self.answers):
            yield "Nothing was found."
        if self.pages and not self.read():
            key, page = next(iter(self.pages.items()))
            url = in_line(self.hits[key].url)[:URL_MAX]
            yield f"No page that was found could be read. The first, {url}: {page.note}."
        elif late := [self.hits[key].url for key, page in self.pages.items() if page.late]:
            urls = ", ".join(in_line(url)[:URL_MAX] for url in late)
            yield f"These need scripts, which the browser did not run in time: {urls}."


class Research:
    """Carries out one task."""

    def __init__(
        self,
        task: Task,
        providers: Sequence[SearchProvider],
        reader: Reads,
        count: CountTokens,
        *,
        embedder: Embedder | None = None,
        report: Report = lambda step, detail: None,
        further: Further | None = None,
    ) -> None:
        self._task = task
        self._providers = providers
        self._reader = reader
        self._count = count
        self._embedder = embedder
        self._report = report
        self._further = further
        self._found = _Found()
        self._outcome = Outcome()
        self._pages_left = task.limits.pages
        self._watch = Stopwatch(task.limits.seconds)

    async def run(self) -> Outcome:
        """Never takes much longer than the task's seconds, but for the model's own."""
        links = [Hit(link) for link in self._task.links]
        await asyncio.gather(self._read(links, len(links), 1), self._rounds())
        await self._choose()
        self._outcome.pages_read = self._found.read()
        self._outcome.notes += self._found.trouble()
        self._outcome.seconds = round(self._watch.spent, 3)
        return self._outcome

    async def _rounds(self) -> None:
        queries = list(self._task.queries)
        for rounds_left in range(self._task.limits.rounds, 0, -1):
            if queries:
                await self._round(queries, rounds_left)
            queries = await self._next_queries() if rounds_left > 1 else []

    async def _round(self, queries: Sequence[str], rounds_left: int) -> None:
        self._report("searching", "; ".join(queries))
        self._outcome.queries += queries
        seconds = self._time() / rounds_left
        task = self._task
        asked = [
            Query(text, task.language, task.time_range, seconds * SEARCHING) for text in queries
        ]
        result = await search(self._providers, asked)
        self._outcome.notes += result.notes
        self._found.answers.append((result.answered, bool(result.hits)))
        fresh = [hit for hit in result.hits if canonical(hit.url) not in self._found.hits]
        self._pages_left -= (wanted := -(-self._pages_left // rounds_left))
        await self._read(at_most(fresh, task.per_site), wanted, rounds_left)

    async def _read(self, hits: Iterable[Hit], wanted: int, rounds_left: int) -> None:
        """Reads pages until enough have text or the time is up; the other hits stay as found."""
        found = {canonical(hit.url): hit for hit in hits}
        self._found.hits |= found
        if found and wanted:
            sites = [site_of(hit.url) for hit in list(found.values())[:wanted]]
            self._report("reading", ", ".join(dict.fromkeys(sites)))
            seconds = self._time() / rounds_left
            self._found.pages |= await read_some(self._reader, found, wanted, seconds)

    async def _next_queries(self) -> list[str]:
        """What to search for next, from the best that was found."""
        if self._further is None or not self._found.hits or not self._time():
            return []
        sources = await self._chosen(self._task.budget // 4)
        found = "\n\n".join(
            f"{source.hit.title}: {passage.text}"
            for source in sources
            for passage in source.passages
        )
        with self._watch.paused():
            self._report("planning", "what is still missing")
            return list(await self._further(found, self._outcome.queries))

    async def _choose(self) -> None:
        if not self._found.hits:
            return
        count = len(self._found.candidates())
        self._report("choosing", f"passages of {count} page{'s' if count != 1 else ''}")
        self._outcome.sources = await self._chosen(self._task.budget)

    async def _chosen(self, budget: int) -> list[Source]:
        candidates = self._found.candidates()
        passages = await choose(
            [Candidate(site_of(hit.url), hit.title, _text(hit, page)) for hit, page in candidates],
            [self._task.question, *self._outcome.queries],
            budget,
            self._count,
            embedder=self._embedder,
            seconds=min(self._watch.left, MEANING * self._task.limits.seconds),
        )
        order = dict.fromkeys(passage.page for passage in passages)
        return [
            Source(*candidates[place], [p for p in passages if p.page == place]) for place in order
        ]

    def _time(self) -> float:
        """Seconds left for searching and reading."""
        return max(self._watch.left - CHOOSING * self._task.limits.seconds, 0.0)


def _text(hit: Hit, page: Page | None) -> str:
    if page is None or page.late:
        return max(page.text if page else "", hit.snippet, key=len)
    return page.text or hit.snippet
