"""The store: every collection's chunks, in one table for each embedding model."""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections.abc import Collection, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

from hookline import InvalidRequest, StartError
from hookline_knowledge.chunks import Chunk
from hookline_knowledge.store.fusion import with_neighbours_joined
from hookline_knowledge.store.lance import lancedb
from hookline_knowledge.store.records import Hit, Query
from hookline_knowledge.store.space import Space
from hookline_knowledge.store.upkeep import Upkeep

PREFIX = "chunks-"
INDEX_FROM = 15_000
"""Chunks from which on the nearest are looked for in a graph. Comparing all of 20,000 takes 28 ms
of a processor, the graph 14; building it takes half a minute, once, in the background."""
INDEX_CACHE = 256 << 20
METADATA_CACHE = 32 << 20
"""Bytes of memory that LanceDB may keep; its own bounds are gigabytes."""
REMOTE_FRESHNESS = timedelta(seconds=5)
"""How old a view of a bucket may be. Asking it anew takes a request; a folder is always asked."""


class Store:
    """Chunks with their vectors. All methods are safe to call at once, also from processes that
    share a folder or bucket.

    A document is added as a whole or not at all, also where the process is killed meanwhile. What
    was added is found by the next search.
    """

    def __init__(
        self,
        uri: str,
        storage_options: Mapping[str, str] | None = None,
        *,
        index_from: int = INDEX_FROM,
    ) -> None:
        # an absolute path, as LanceDB takes every name that begins with "db" for its cloud
        self.uri = uri if "://" in uri else str(Path(uri).expanduser().absolute())
        self._options = dict(storage_options or {})
        self._index_from = index_from
        self._spaces: dict[str, Space] = {}
        self._opening = asyncio.Lock()
        self._connection: Any = None
        self._upkeep = Upkeep()

    async def open(self) -> None:
        """Connects. Raises StartError where the place cannot be used."""
        library = await asyncio.to_thread(lancedb)
        try:
            self._connection = await library.connect_async(
                self.uri,
                storage_options=self._options,
                read_consistency_interval=_freshness(self.uri),
                session=library.Session(INDEX_CACHE, METADATA_CACHE),
            )
            await self._refresh()
        except (OSError, RuntimeError, ValueError) as error:
            reason = " ".join(str(error).split())[:400]
            raise StartError(f"The collections at {self.uri} cannot be opened: {reason}") from error
        self._upkeep.start()

    async def close(self) -> None:
        """Ends upkeep and lets go of all tables."""
        await self._upkeep.stop()
        for space in self._spaces.values():
            space.close()
        self._spaces.clear()
        if self._connection is not None:
            self._connection.close()

    # Adding and removing

    async def add(
        self,
        model: str,
        collection: int,
        document: int,
        chunks: Sequence[Chunk],
        vectors: Sequence[Sequence[float]],
    ) -> int:
        """Adds a whole document; how many bytes it takes.

        Raises InvalidRequest where the collection has documents of another model.
        """
        if not chunks:
            return 0
        await self.refuse_other_model(model, [collection])
        space = await self._space(model, len(vectors[0]))
        size = await space.add(collection, document, chunks, vectors)
        self._upkeep.note(space)
        return size

    async def delete(self, documents: Collection[int]) -> None:
        """Removes all chunks of documents."""
        await self._delete("document", documents)

    async def delete_collections(self, collections: Collection[int]) -> None:
        """Removes all chunks of collections."""
        await self._delete("collection", collections)

    async def _delete(self, column: str, ids: Collection[int]) -> None:
        if not ids:
            return
        for space in await self._refresh():
            if await space.delete(column, ids):
                self._upkeep.note(space)

    # Finding

    async def search(self, query: Query) -> list[Hit]:
        """The chunks that answer best, best first, neighbours as one.

        Raises InvalidRequest where one of the collections has documents of another model.
        """
        await self.refuse_other_model(query.model, query.collections)
        space = self._spaces.get(query.model)
        if space is None or query.collections == [] or query.documents == []:
            return []
        return with_neighbours_joined(await space.search(query))

    async def chunks(self, document: int) -> list[Chunk]:
        """All of a document, in order."""
        found = [await space.chunks(document) for space in await self._refresh()]
        return max(found, key=len, default=[])

    async def count(self, collections: Sequence[int] | None = None) -> int:
        """How many chunks there are."""
        return sum([await space.count(collections) for space in await self._refresh()])

    # Models

    async def models(self, collections: Sequence[int] | None = None) -> list[str]:
        """The embedding models that have made vectors of these collections, or of any."""
        spaces = await self._refresh()
        return [space.model for space in spaces if await space.has(collections)]

    async def refuse_other_model(self, model: str, collections: Sequence[int] | None) -> None:
        """Raises InvalidRequest where collections hold vectors that this model did not make."""
        others = [s for s in await self._refresh() if s.model != model]
        for space in others:
            if await space.has(collections):
                raise InvalidRequest(
                    f"The documents were embedded with '{space.model}', and the embedder is now "
                    f"'{model}': their vectors cannot be compared. Run 'hookline knowledge "
                    "reembed', or set [plugin.knowledge] embedder back.",
                    param="knowledge",
                    code="invalid_knowledge",
                )

    async def outdated(self, model: str, collections: Sequence[int] | None = None) -> list[int]:
        """The documents whose vectors come from other models, for embedding them anew."""
        others = [s for s in await self._refresh() if s.model != model]
        return sorted({number for s in others for number in await s.documents(collections)})

    async def reembed(self, model: str, document: int, vectors: Sequence[Sequence[float]]) -> None:
        """Moves a document to a model, with that model's vectors of its chunks in order.

        Broken off half way, the document stays outdated, and doing it again repairs it.
        """
        chunks = await self.chunks(document)
        others = [s for s in await self._refresh() if s.model != model]
        homes = [home for s in others if (home := await s.collection_of(document)) is not None]
        if not chunks or not homes:
            return
        space = await self._space(model, len(vectors[0]))
        await space.delete("document", [document])
        await space.add(homes[0], document, chunks, vectors)
        for other in others:
            await other.delete("document", [document])
            self._upkeep.note(other)
        self._upkeep.note(space)

    # Tables

    async def _refresh(self) -> list[Space]:
        """All tables, also those that another process has made meanwhile."""
        for name in await self._names():
            if name not in {space.name for space in self._spaces.values()}:
                async with self._opening:
                    await self._open(name)
        return list(self._spaces.values())

    async def _names(self) -> list[str]:
        names: list[str] = []
        page: str | None = None
        while True:
            listing = await self._connection.list_tables(page_token=page)
            names += [name for name in listing.tables if name.startswith(PREFIX)]
            page = listing.page_token
            if not page:
                return names

    async def _open(self, name: str) -> Space:
        space = await Space.open(self._connection, name, index_from=self._index_from)
        return self._spaces.setdefault(space.model, space)

    async def _space(self, model: str, dimensions: int) -> Space:
        """The table of a model, made where there is none yet."""
        async with self._opening:
            if model not in self._spaces:
                name = table_name(model)
                await Space.create(self._connection, name, model, dimensions)
                await self._open(name)
        space = self._spaces[model]
        if space.dimensions != dimensions:
            raise InvalidRequest(
                f"The embedder '{model}' now makes vectors of {dimensions} numbers, and the "
                f"documents have {space.dimensions}. Its model was changed; give it another name."
            )
        return space


def _freshness(uri: str) -> timedelta:
    return REMOTE_FRESHNESS if "://" in uri else timedelta(0)


def table_name(model: str) -> str:
    """A name that a folder can have, and that no other model gets."""
    plain = re.sub(r"[^A-Za-z0-9.-]+", "_", model)[:60]
    return f"{PREFIX}{plain}-{hashlib.sha256(model.encode()).hexdigest()[:8]}"
