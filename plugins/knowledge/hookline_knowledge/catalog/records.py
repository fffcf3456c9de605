"""What the catalog keeps. Times are seconds since 1970, in UTC."""

from __future__ import annotations

import json
import sqlite3
from dataclasses import dataclass
from typing import Any, Literal

Attributes = dict[str, str | float | bool]
Status = Literal["in_progress", "completed", "cancelled", "failed"]


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A file as it was sent. ``hash`` is the SHA-256 of its bytes in hex; ``origin`` is the path on
    this machine that it was read from, if it was."""

    seq: int
    id: str
    name: str
    purpose: str
    bytes: int
    hash: str
    media_type: str | None
    origin: str | None
    created: int
    expires: int | None

    @classmethod
    def of(cls, row: sqlite3.Row) -> StoredFile:
        return cls(**{name: row[name] for name in cls.__slots__})


@dataclass(frozen=True, slots=True)
class Collection:
    """A collection of documents, which is one of OpenAI's vector stores.

    ``expires_days`` counts from ``active``, when it was last used. An expired collection is empty.
    """

    number: int
    id: str
    name: str
    description: str | None
    metadata: dict[str, str]
    state: Literal["open", "expired"]
    created: int
    active: int
    expires_days: int | None

    @classmethod
    def of(cls, row: sqlite3.Row) -> Collection:
        values = {name: row[name] for name in cls.__slots__}
        return cls(**{**values, "metadata": json.loads(row["metadata"])})

    @property
    def short_id(self) -> str:
        """The id that people type, such as ``c:3``."""
        return f"c:{self.number}"

    @property
    def expires(self) -> int | None:
        """When it expires unless it is used before."""
        return None if self.expires_days is None else self.active + self.expires_days * 86400


@dataclass(frozen=True, slots=True)
class Chunking:
    """How a file is cut: tokens a chunk, and tokens that neighbours share."""

    tokens: int
    overlap: int


@dataclass(frozen=True, slots=True)
class Member:
    """A file in a collection. ``seq`` names its rows in the store: a file that is read again gets a
    new one, and the old rows are seen until the new ones are complete. ``error_message`` of one
    that is completed says what of the file could not be read."""

    seq: int
    collection: int
    file: str
    status: Status
    error_code: str | None
    error_message: str | None
    attributes: Attributes
    chunking: Chunking
    usage_bytes: int
    created: int
    batch: str | None

    @classmethod
    def of(cls, row: sqlite3.Row) -> Member:
        own = {name: row[name] for name in cls.__slots__ if name not in ("attributes", "chunking")}
        chunking = Chunking(row["chunk_tokens"], row["overlap_tokens"])
        return cls(**own, attributes=json.loads(row["attributes"]), chunking=chunking)


@dataclass(frozen=True, slots=True)
class Batch:
    """Files that were added to a collection at once."""

    seq: int
    id: str
    collection: int
    created: int
    cancelled: bool

    @classmethod
    def of(cls, row: sqlite3.Row) -> Batch:
        values: dict[str, Any] = {name: row[name] for name in cls.__slots__}
        return cls(**{**values, "cancelled": bool(row["cancelled"])})


@dataclass(frozen=True, slots=True)
class Counts:
    """How many files are in which state, and the bytes of those that are complete."""

    in_progress: int = 0
    completed: int = 0
    failed: int = 0
    cancelled: int = 0
    usage_bytes: int = 0

    @property
    def total(self) -> int:
        """All of them."""
        return self.in_progress + self.completed + self.failed + self.cancelled
