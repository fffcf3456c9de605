"""From questions to passages that may be shown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from hookline import InvalidRequest
from hookline_knowledge.catalog import Collection, Member, StoredFile, collections, files, members
from hookline_knowledge.embedding import EmbedderOf
from hookline_knowledge.filters import Comparison, Compound, matches
from hookline_knowledge.floors import Floors, strong
from hookline_knowledge.library import Library
from hookline_knowledge.pictures.gallery import Gallery, is_picture_url
from hookline_knowledge.store import Hit, Query, Store

TOUCH_SECONDS = 60
SPARE_HITS = 4
"""Hits asked for beyond those wanted, since some may be of files that are just leaving."""


@dataclass(frozen=True, slots=True)
class Passage:
    """A stretch of a document. ``similarity`` is the cosine of query and passage, 0 to 1, and
    ``score``, 0 to 1 too, takes the words that they share into account."""

    text: str
    location: str
    similarity: float
    score: float
    file: str
    document: str
    member: Member

    def cut(self, characters: int) -> Passage:
        """Its beginning."""
        return replace(self, text=self.text[:characters])


class Searcher:
    """Searches collections. ``floor`` is the similarity below which nothing is an answer; without
    it that of the embedder counts."""

    def __init__(
        self,
        library: Library,
        store: Store,
        embedder: EmbedderOf,
        floor: float | None,
        gallery: Gallery | None = None,
    ) -> None:
        self._library = library
        self._store = store
        self._embedder = embedder
        self._floors = Floors(floor)
        self._gallery = gallery

    async def strong(self) -> float:
        """The similarity from which on a passage surely answers. Raises KnowledgeUnavailable."""
        return strong(await self._floors.of(await self._embedder()))

    @property
    def sees(self) -> bool:
        """Whether pictures are looked at."""
        return self._gallery is not None

    async def search(
        self,
        among: Sequence[Collection],
        queries: Sequence[str],
        *,
        limit: int,
        floor: float | None = None,
        filters: Comparison | Compound | None = None,
    ) -> list[Passage]:
        """The best passages for one or several queries, best first.

        A query may be a picture, as a ``data:`` URL. ``floor`` overrides the setting for passages;
        ``filters`` go by the attributes of files. Raises KnowledgeUnavailable, and InvalidRequest
        for a picture where none is looked at.
        """
        numbers = [collection.number for collection in among if collection.state == "open"]
        only = await self._passing(numbers, filters) if filters is not None else None
        if not numbers or only == []:
            return []
        texts = [query for query in queries if not is_picture_url(query)]
        rankings = await self._by_text(texts, numbers, only, limit + SPARE_HITS, floor)
        rankings += await self._pictures(queries, numbers, only, limit + SPARE_HITS)
        await self._touch(among)
        return (await self._passages(_merged(rankings)))[:limit]

    async def are_there(self, passages: Sequence[Passage], among: Sequence[Collection]) -> bool:
        """Whether passages that a search among these collections found may all still be shown."""
        numbers = {collection.number for collection in among if collection.state == "open"}
        read = self._library.catalog.read
        shown = await read(members.visible, list({passage.member.seq for passage in passages}))
        named = await read(files.named, {passage.file for passage in passages})
        return all(
            passage.member.seq in shown
            and passage.member.collection in numbers
            and passage.file in named
            for passage in passages
        )

    async def _by_text(
        self,
        texts: Sequence[str],
        numbers: Sequence[int],
        only: Sequence[int] | None,
        limit: int,
        floor: float | None,
    ) -> list[list[Hit]]:
        if not texts:
            return []
        embedder = await self._embedder()
        least = await self._floors.of(embedder) if floor is None else floor
        vectors = await embedder.embed(texts, kind="query")
        return [
            await self._store.search(
                Query(text, vector, embedder.name, numbers, only, limit, least)
            )
            for text, vector in zip(texts, vectors, strict=True)
        ]

    async def _pictures(
        self, queries: Sequence[str], numbers: Sequence[int], only: Sequence[int] | None, limit: int
    ) -> list[list[Hit]]:
        if self._gallery is None:
            if any(map(is_picture_url, queries)):
                raise InvalidRequest(
                    "Searching for a picture needs [plugin.knowledge.pictures] checkpoint.",
                    param="query",
                )
            return []
        search = self._gallery.search
        return [await search(numbers, query, limit=limit, only=only) for query in queries]

    async def _touch(self, among: Sequence[Collection]) -> None:
        """Notes that collections are used; days are counted, so not every search needs to."""
        now = self._library.now
        due = [each.number for each in among if each.active < now - TOUCH_SECONDS]
        if due:
            await self._library.catalog.write(collections.touch, due, now)

    async def _passing(
        self, numbers: Sequence[int], filters: Comparison | Compound
    ) -> list[int] | None:
        """The members whose attributes pass; None where all do."""
        every = await self._library.catalog.read(members.searchable, numbers)
        passing = [member.seq for member in every if matches(filters, member.attributes)]
        return None if len(passing) == len(every) else passing

    async def _passages(self, hits: Sequence[Hit]) -> list[Passage]:
        """What may be shown, each text of a file once, also where several collections hold it."""
        seqs = list({hit.document for hit in hits})
        shown = await self._library.catalog.read(members.visible, seqs)
        named = await self._library.catalog.read(files.named, {m.file for m in shown.values()})
        passages: dict[tuple[str, str], Passage] = {}
        for hit in hits:
            member = shown.get(hit.document)
            if member is not None and (file := named.get(member.file)) is not None:
                passages.setdefault((file.hash, hit.text), _passage(hit, member, file))
        return list(passages.values())


def _passage(hit: Hit, member: Member, file: StoredFile) -> Passage:
    return Passage(
        *(hit.text, hit.location, hit.similarity, hit.score, file.id, file.name), member=member
    )


def _merged(rankings: Sequence[Sequence[Hit]]) -> list[Hit]:
    """Several rankings as one; each hit as the query has it that it answers best."""
    best: dict[tuple[int, int], Hit] = {}
    for hit in (hit for ranking in rankings for hit in ranking):
        key = (hit.document, hit.position)
        if key not in best or best[key].score < hit.score:
            best[key] = hit
    return sorted(best.values(), key=lambda hit: -hit.score)
