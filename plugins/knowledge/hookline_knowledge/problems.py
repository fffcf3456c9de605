"""What clients are told when something about collections does not work."""

from __future__ import annotations

import errno
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hookline import InvalidRequest, NotFound, Unavailable


class CollectionNotFound(NotFound):
    """No such collection, or none any more."""

    code = "collection_not_found"


class KnowledgeUnavailable(Unavailable):
    """Nothing can be searched or added: the embedding model is missing or has failed.

    Where waiting helps ``retry_after`` says how many seconds; else clients are told not to try
    again by themselves, which OpenAI's would.
    """

    code = "knowledge_unavailable"

    def __init__(self, message: str, *, retry_after: int | None = None, **rest: Any) -> None:
        super().__init__(message, retry_after=retry_after or 0, **rest)
        if retry_after is None:
            del self.headers["Retry-After"]
            self.headers["x-should-retry"] = "false"


class StorageFull(KnowledgeUnavailable):
    """Nothing can be kept: the disk, or what may be used of it, is full."""

    code = "storage_full"


@contextmanager
def telling_of_full_disk(folder: Path) -> Iterator[None]:
    """Raises StorageFull in place of what says that there is no room in a folder."""
    try:
        yield
    except (OSError, sqlite3.Error) as error:
        if not is_full_disk(error):
            raise
        raise StorageFull(f"There is no room left in {folder}. Remove something there.") from error


def is_full_disk(error: Exception) -> bool:
    """Whether that is what went wrong; LanceDB only says it in words."""
    if isinstance(error, sqlite3.Error):
        return getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_FULL
    number = error.errno if isinstance(error, OSError) else None
    return number in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG) or "No space left" in str(error)


def no_collection(name: str, param: str | None = None) -> CollectionNotFound:
    """There is no collection of that id or name."""
    return CollectionNotFound(
        f"There is no collection '{name[:100]}'. GET /v1/vector_stores and 'hookline "
        "knowledge list' show all.",
        param=param,
    )


def ambiguous(name: str, ids: list[str], param: str | None = None) -> InvalidRequest:
    """Several collections have that name."""
    return InvalidRequest(
        f"{len(ids)} collections have the name '{name[:100]}'; use an id instead: "
        f"{', '.join(ids[:10])}.",
        param=param,
        code="invalid_knowledge" if param == "knowledge" else None,
    )


def no_file(id: str, param: str | None = "file_id") -> NotFound:
    """There is no file of that id."""
    return NotFound(f"There is no file '{id[:100]}'. GET /v1/files lists all.", param=param)


def no_member(file: str, collection: str) -> NotFound:
    """The collection has no such file."""
    return NotFound(f"There is no file '{file[:100]}' in '{collection}'.", param="file_id")


def no_batch(id: str, collection: str) -> NotFound:
    """The collection has no such batch."""
    return NotFound(f"There is no batch '{id[:100]}' in '{collection}'.", param="batch_id")
