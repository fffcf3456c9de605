"""One LanceDB table: the chunks whose vectors one embedding model has made."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Sequence
from datetime import timedelta
from typing import Any, TypeVar

import numpy as np

from hookline_knowledge.chunks import Chunk
from hookline_knowledge.store.finding import CHUNK, chunk_of, condition, filtered, found, listed
from hookline_knowledge.store.records import Hit, Query

SCHEMA = "1"
"""The version of the columns below; a table of another is refused."""
IDS_AT_ONCE = 1000
OLD_VERSIONS = timedelta(minutes=5)
"""How long another process may go on reading what was changed meanwhile."""
MOST_PARTS = 6
"""Of an index, before it is made anew."""
TRIES = 5

Result = TypeVar("Result")


class Space:
    """The chunks of one embedding model.

    Words are found through an index that also looks at rows it does not hold yet. Vectors are
    compared one by one, and beyond ``index_from`` chunks through an HNSW graph.
    """

    def __init__(self, table: Any, schema: Any, index_from: int) -> None:
        self.name: str = table.name
        self.model = schema.metadata[b"model"].decode()
        self.dimensions: int = schema.field("vector").type.list_size
        self._table = table
        self._schema = schema
        self._index_from = index_from
        self._writing = asyncio.Lock()
        self._indexed = False

    @classmethod
    async def create(cls, connection: Any, name: str, model: str, dimensions: int) -> None:
        """Makes the table; nothing happens where another process was quicker."""
        schema = _schema(model, dimensions)
        table = await connection.create_table(name, schema=schema, exist_ok=True)
        for column, config in _indexes(graph=False).items():
            await table.create_index(column, config=config)
        table.close()

    @classmethod
    async def open(cls, connection: Any, name: str, *, index_from: int) -> Space:
        """Opens the table. Raises ValueError where another version made it."""
        table = await connection.open_table(name)
        schema = await table.schema()
        version = (schema.metadata or {}).get(b"hookline", b"none").decode()
        if version != SCHEMA:
            raise ValueError(f"{name} has the schema {version}, and this version reads {SCHEMA}")
        space = cls(table, schema, index_from)
        space._indexed = await space._parts("vector") > 0
        return space

    def close(self) -> None:
        """Lets go of the table."""
        self._table.close()

    # Writing

    async def add(
        self,
        collection: int,
        document: int,
        chunks: Sequence[Chunk],
        vectors: Sequence[Sequence[float]],
    ) -> int:
        """Adds a document in one transaction; how many bytes it takes."""
        rows = await asyncio.to_thread(self._rows, collection, document, chunks, vectors)
        async with self._writing:
            await _tried(lambda: self._table.add(rows))
        return int(rows.nbytes)

    def _rows(
        self,
        collection: int,
        document: int,
        chunks: Sequence[Chunk],
        vectors: Sequence[Sequence[float]],
    ) -> Any:
        import pyarrow as pa

        flat = np.asarray(vectors, np.float32)
        if flat.shape != (len(chunks), self.dimensions):
            raise ValueError(f"{len(chunks)} chunks, but vectors of the shape {flat.shape}")
        columns: dict[str, Any] = {
            "collection": np.full(len(chunks), collection, np.int64),
            "document": np.full(len(chunks), document, np.int64),
            "position": np.arange(len(chunks), dtype=np.int32),
            "vector": pa.FixedSizeListArray.from_arrays(pa.array(flat.ravel()), self.dimensions),
        }
        columns |= {name: [getattr(chunk, name) for chunk in chunks] for name in CHUNK}
        return pa.table(columns, schema=self._schema)

    async def delete(self, column: str, ids: Collection[int]) -> bool:
        """Removes the rows with these ids; whether there were any."""
        there = False
        numbers = sorted(ids)
        for start in range(0, len(numbers), IDS_AT_ONCE):
            where = f"{column} IN ({listed(numbers[start : start + IDS_AT_ONCE])})"
            if await self._table.count_rows(where):
                there = True
                async with self._writing:
                    await _tried(lambda where=where: self._table.delete(where))  # type: ignore[misc]
        return there

    # Reading

    async def has(self, collections: Sequence[int] | None) -> bool:
        """Whether any of these collections, or any at all, has a chunk."""
        query = filtered(self._table.query(), condition(collections, None))
        return bool((await query.select(["position"]).limit(1).to_arrow()).num_rows)

    async def count(self, collections: Sequence[int] | None = None) -> int:
        """How many chunks there are."""
        return int(await self._table.count_rows(condition(collections, None)))

    async def documents(self, collections: Sequence[int] | None = None) -> set[int]:
        """All documents of these collections."""
        query = filtered(self._table.query(), condition(collections, None))
        rows = await query.select(["document"]).to_arrow()
        return set(rows["document"].to_pylist())

    async def chunks(self, document: int) -> list[Chunk]:
        """The chunks of a document, in order."""
        query = self._table.query().where(f"document = {int(document)}")
        rows = (await query.select(["position", *CHUNK]).to_arrow()).to_pylist()
        return [chunk_of(row) for row in sorted(rows, key=lambda row: row["position"])]

    async def collection_of(self, document: int) -> int | None:
        """Where a document is."""
        query = self._table.query().where(f"document = {int(document)}")
        rows = (await query.select(["collection"]).limit(1).to_arrow()).to_pylist()
        return int(rows[0]["collection"]) if rows else None

    async def search(self, query: Query) -> list[Hit]:
        """The chunks that answer best, best first."""
        exact = not self._indexed or await self._is_small(query)
        return await found(self._table, query, exact=exact)

    async def _is_small(self, query: Query) -> bool:
        """Whether few enough chunks pass the filter to compare them all: a graph that most of its
        neighbours are filtered from leads astray."""
        where = condition(query.collections, query.documents)
        return bool(await self._table.count_rows(where) < self._index_from)

    # Upkeep

    async def tidy(self) -> None:
        """Joins small files, forgets old versions, brings the indexes up to date."""
        async with self._writing:
            await _tried(lambda: self._table.optimize(cleanup_older_than=OLD_VERSIONS))
            large = self._indexed or await self._table.count_rows() >= self._index_from
            for column, config in _indexes(graph=large).items():
                if await self._parts(column) not in range(1, MOST_PARTS + 1):
                    await self._table.create_index(column, config=config)
            self._indexed = large

    async def _parts(self, column: str) -> int:
        """How many parts the index of a column has: tidying adds one for what was new, and each
        is searched. 0 where there is none."""
        for index in await self._table.list_indices():
            if column in index.columns and (stats := await self._table.index_stats(index.name)):
                return int(stats.num_indices or 1)
        return 0


async def _tried(write: Callable[[], Awaitable[Result]]) -> Result:
    """A write, again where another process wrote at the same moment."""
    for left in range(TRIES - 1, -1, -1):
        try:
            return await write()
        except (OSError, RuntimeError) as error:
            if "conflict" not in str(error).lower() or not left:
                raise
        await asyncio.sleep(0.05 * (TRIES - left))
    raise AssertionError("unreachable")


def _indexes(*, graph: bool) -> dict[str, Any]:
    """The indexes by their columns. The graph is built with less care than it could be, which is
    four times as quick; searching it broadly finds the same."""
    from lancedb.index import FTS, Bitmap, BTree, HnswSq

    vector = {"vector": HnswSq(distance_type="cosine", ef_construction=100)} if graph else {}
    return {"text": FTS(), "collection": Bitmap(), "document": BTree(), **vector}


def _schema(model: str, dimensions: int) -> Any:
    import pyarrow as pa

    columns: dict[str, Any] = {
        "collection": pa.int64(),
        "document": pa.int64(),
        "position": pa.int32(),
        "text": pa.string(),
        "location": pa.string(),
        "section": pa.int32(),
        "start": pa.int32(),
        "end": pa.int32(),
        "vector": pa.list_(pa.float32(), dimensions),
    }
    return pa.schema(list(columns.items()), metadata={"hookline": SCHEMA, "model": model})
