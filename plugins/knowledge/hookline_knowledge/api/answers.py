"""The bodies of `hookline_knowledge.api.bodies` as models, for the reference page and the tests."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from hookline_knowledge.catalog import Attributes


class _Answer(BaseModel):
    model_config = ConfigDict(extra="forbid")


class _List(_Answer):
    object: Literal["list"]
    first_id: str | None
    last_id: str | None
    has_more: bool


class FileObject(_Answer):
    """A file."""

    id: str
    object: Literal["file"]
    bytes: int
    created_at: int
    expires_at: int | None
    filename: str
    purpose: str
    status: Literal["processed"]
    status_details: str | None


class FileList(_List):
    """Files."""

    data: list[FileObject]


class FileDeleted(_Answer):
    """A file is gone."""

    id: str
    object: Literal["file"]
    deleted: bool


class FileCounts(_Answer):
    """How many files are in which state."""

    in_progress: int
    completed: int
    failed: int
    cancelled: int
    total: int


class Expiry(_Answer):
    """When a collection expires."""

    anchor: Literal["last_active_at"]
    days: int


class VectorStore(_Answer):
    """A collection; ``collection`` is its short id, such as ``c:3``."""

    id: str
    object: Literal["vector_store"]
    created_at: int
    name: str
    description: str | None
    usage_bytes: int
    file_counts: FileCounts
    status: Literal["expired", "in_progress", "completed"]
    expires_after: Expiry | None
    expires_at: int | None
    last_active_at: int
    metadata: dict[str, str]
    collection: str


class VectorStoreList(_List):
    """Collections."""

    data: list[VectorStore]


class VectorStoreDeleted(_Answer):
    """A collection is gone."""

    id: str
    object: Literal["vector_store.deleted"]
    deleted: bool


class LastError(_Answer):
    """Why a file failed."""

    code: Literal["server_error", "unsupported_file", "invalid_file"]
    message: str


class VectorStoreFile(_Answer):
    """A file in a collection. ``notes`` say what of a file that was read is not in it, and why."""

    id: str
    object: Literal["vector_store.file"]
    created_at: int
    vector_store_id: str
    usage_bytes: int
    status: Literal["in_progress", "completed", "cancelled", "failed"]
    last_error: LastError | None
    notes: str | None
    attributes: Attributes
    chunking_strategy: dict[str, Any]


class VectorStoreFileList(_List):
    """Files of a collection."""

    data: list[VectorStoreFile]


class VectorStoreFileDeleted(_Answer):
    """A file is no longer in the collection."""

    id: str
    object: Literal["vector_store.file.deleted"]
    deleted: bool


class Content(_Answer):
    """Some text, and where in the file it stands."""

    type: Literal["text"]
    text: str
    location: str


class FileContent(_Answer):
    """What was read from a file."""

    object: Literal["vector_store.file_content.page"]
    data: list[Content]
    has_more: bool
    next_page: str | None


class FileBatch(_Answer):
    """Files that were added at once."""

    id: str
    object: Literal["vector_store.files_batch"]
    created_at: int
    vector_store_id: str
    status: Literal["in_progress", "completed", "cancelled", "failed"]
    file_counts: FileCounts


class SearchResult(_Answer):
    """A passage. ``similarity`` is the cosine of the vectors of query and passage, ``score`` takes
    their words into account too; both are from 0 to 1, and results are ordered by ``score``."""

    file_id: str
    filename: str
    score: float
    similarity: float
    attributes: Attributes
    content: list[Content]


class SearchResults(_Answer):
    """What a search found, best first."""

    object: Literal["vector_store.search_results.page"]
    search_query: list[str]
    data: list[SearchResult]
    has_more: bool
    next_page: str | None
