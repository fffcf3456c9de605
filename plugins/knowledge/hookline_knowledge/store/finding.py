"""Search in one table: by vector and by words at once, both made one score."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from hookline_knowledge.chunks import Chunk
from hookline_knowledge.store.fusion import score
from hookline_knowledge.store.records import Hit, Query

CHUNK = ("text", "location", "section", "start", "end")
COLUMNS = ("collection", "document", "position", *CHUNK, "vector")
CANDIDATES = 50
"""Chunks that each of the two searches contributes at least."""
REFINE = 4
"""With the graph, whose vectors are rounded: so many times more are compared exactly."""
BREADTH = 400
"""Of the search in the graph (``ef``), at least; recall was measured with it."""

Row = Mapping[str, Any]
Vector = npt.NDArray[np.float32]


async def found(table: Any, query: Query, *, exact: bool) -> list[Hit]:
    """The chunks that answer best, best first, as many as wanted and no worse than the floor."""
    vector = np.asarray(query.vector, np.float32)
    vector = vector / (np.linalg.norm(vector) or 1.0)
    where = condition(query.collections, query.documents)
    wanted = max(CANDIDATES, 2 * query.limit)
    near, worded = await asyncio.gather(
        _by_vector(table, vector, where, wanted, exact=exact),
        _by_words(table, query.text, where, wanted),
    )
    rows = {_key(row): row for row in (*near, *worded)}
    best = max((row["_score"] for row in worded), default=0.0)
    hits = [_hit(row, vector, best, query.stretch) for row in rows.values()]
    hits = [hit for hit in hits if hit.similarity >= query.floor]
    return sorted(hits, key=lambda hit: -hit.score)[: query.limit]


async def _by_vector(
    table: Any, vector: Vector, where: str | None, wanted: int, *, exact: bool
) -> list[Row]:
    query = filtered(table.query(), where).nearest_to(vector).distance_type("cosine").limit(wanted)
    if exact:
        query = query.bypass_vector_index()
    else:
        query = query.ef(max(BREADTH, REFINE * wanted)).refine_factor(REFINE)
    return await _rows(query, "_distance")


async def _by_words(table: Any, text: str, where: str | None, wanted: int) -> list[Row]:
    if not text.strip():
        return []
    return await _rows(filtered(table.query(), where).nearest_to_text(text).limit(wanted), "_score")


async def _rows(query: Any, score: str) -> list[Row]:
    """What is found; vectors stay arrays, since numbers one by one take milliseconds."""
    found = await query.select([*COLUMNS, score]).to_arrow()
    if not len(found):
        return []
    vectors = found.column("vector").combine_chunks().flatten().to_numpy().reshape(len(found), -1)
    rows = found.drop_columns(["vector"]).to_pylist()
    return [{**row, "vector": vector} for row, vector in zip(rows, vectors, strict=True)]


def _key(row: Row) -> tuple[int, int]:
    return row["document"], row["position"]


def _hit(row: Row, vector: Vector, best: float, stretch: float) -> Hit:
    """Its similarity is computed here, so that it does not depend on how the row was found."""
    own = np.asarray(row["vector"], np.float32)
    cosine = float(own @ vector / (np.linalg.norm(own) or 1.0))
    similarity = min(1.0, max(0.0, cosine))
    found = score(min(1.0, similarity * stretch), row.get("_score", 0.0), best)
    place = row["collection"], row["document"], row["position"]
    return Hit(*place, chunk_of(row), similarity, found)


def chunk_of(row: Row) -> Chunk:
    """The chunk in a row."""
    return Chunk(**{name: row[name] for name in CHUNK})


def condition(collections: Sequence[int] | None, documents: Sequence[int] | None) -> str | None:
    """What rows must be like; None where all will do."""
    parts = {"collection": collections, "document": documents}
    tests = [f"{name} IN ({listed(ids)})" for name, ids in parts.items() if ids is not None]
    return " AND ".join(tests) or None


def filtered(query: Any, where: str | None) -> Any:
    """A query of the rows that pass."""
    return query.where(where) if where else query


def listed(ids: Sequence[int]) -> str:
    """Numbers, as SQL lists them."""
    return ", ".join(str(int(number)) for number in ids)
