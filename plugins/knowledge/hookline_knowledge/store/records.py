"""What is asked of the store and what comes out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hookline_knowledge.chunks import Chunk


@dataclass(frozen=True, slots=True)
class Query:
    """What is looked for, and where.

    ``vector`` is of ``text``, from the model called ``model``. Without ``collections`` all are
    searched, without ``documents`` all of theirs. ``limit`` is the most chunks, ``floor`` the
    similarity below which a chunk is no answer. ``stretch`` is what similarities are multiplied by
    in scores, where those of the model stay small.
    """

    text: str
    vector: Sequence[float]
    model: str
    collections: Sequence[int] | None = None
    documents: Sequence[int] | None = None
    limit: int = 10
    floor: float = 0.0
    stretch: float = 1.0


@dataclass(frozen=True, slots=True)
class Hit:
    """A chunk that answers a query, or neighbouring ones of a document as one.

    ``position`` is the number of the (first) chunk in its document, from 0. ``similarity`` is the
    cosine of the vectors of query and chunk, from 0 to 1, and ``score``, by which hits are ordered,
    takes their words into account too; of several chunks each is the best.
    """

    collection: int
    document: int
    position: int
    chunk: Chunk
    similarity: float
    score: float

    @property
    def text(self) -> str:
        """What is shown."""
        return self.chunk.text

    @property
    def location(self) -> str:
        """For people: ``page 3``; empty where there is nothing to say."""
        return self.chunk.location
