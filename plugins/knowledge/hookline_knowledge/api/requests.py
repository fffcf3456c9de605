"""What clients of the Files and Vector Stores API may ask, as OpenAI has it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, model_validator
from quart import request

from hookline.routes import validate
from hookline_knowledge.api.pairs import AttributeMap, Metadata
from hookline_knowledge.catalog import Chunking, Cursor
from hookline_knowledge.filters import Filter

MOST_FILES = 2000
"""Files of one batch."""

FileIds = Annotated[list[str], Field(max_length=MOST_FILES)]
Purpose = Literal["assistants", "batch", "fine-tune", "vision", "user_data", "evals"]
Order = Literal["asc", "desc"]
State = Literal["in_progress", "completed", "failed", "cancelled"]
Query = TypeVar("Query", bound=BaseModel)


class Body(BaseModel):
    """A body whose optional fields may be null, which means absent."""

    model_config = ConfigDict(extra="ignore")

    @model_validator(mode="before")
    @classmethod
    def _null_is_absent(cls, data: Any) -> Any:
        if isinstance(data, Mapping):
            return {key: value for key, value in data.items() if value is not None}
        return data


class ExpiresAfter(Body):
    """When a collection expires: days after it was last used."""

    anchor: Literal["last_active_at"]
    days: int = Field(ge=1, le=365, strict=True)


class FileExpiresAfter(Body):
    """When a file expires: seconds after it was sent."""

    anchor: Literal["created_at"]
    seconds: int = Field(ge=3600, le=2592000)


class StaticChunks(Body):
    """Tokens a chunk, and tokens that neighbours share."""

    max_chunk_size_tokens: int = Field(ge=100, le=4096, strict=True)
    chunk_overlap_tokens: int = Field(ge=0, strict=True)

    @model_validator(mode="after")
    def _overlap_is_less_than_half(self) -> StaticChunks:
        if self.chunk_overlap_tokens * 2 > self.max_chunk_size_tokens:
            raise ValueError("'chunk_overlap_tokens' must not exceed half of the chunk size")
        return self


class AutoChunking(Body):
    """Chunks as the server's settings have them."""

    type: Literal["auto"]


class StaticChunking(Body):
    """Chunks of a size of one's own."""

    type: Literal["static"]
    static: StaticChunks


ChunkingStrategy = Annotated[AutoChunking | StaticChunking, Field(discriminator="type")]


def chunking(strategy: AutoChunking | StaticChunking | None, automatic: Chunking) -> Chunking:
    """The chunks that a request asks for."""
    if not isinstance(strategy, StaticChunking):
        return automatic
    return Chunking(strategy.static.max_chunk_size_tokens, strategy.static.chunk_overlap_tokens)


class FileForm(Body):
    """The form's fields beside ``file``."""

    purpose: Purpose
    expires_after: FileExpiresAfter | None = None


class CreateVectorStore(Body):
    """A new collection."""

    name: str | None = Field(None, description="What people call it.")
    description: str | None = Field(None, max_length=512)
    file_ids: FileIds = Field([], description="Files to begin with.")
    chunking_strategy: ChunkingStrategy | None = None
    expires_after: ExpiresAfter | None = None
    metadata: Metadata = {}


class UpdateVectorStore(BaseModel):
    """Changes of a collection; what is left out stays, null takes away all but the name."""

    model_config = ConfigDict(extra="ignore")

    name: str | None = Field(None, min_length=1)
    description: str | None = Field(None, max_length=512)
    expires_after: ExpiresAfter | None = None
    metadata: Metadata | None = None


class CreateMember(Body):
    """A file for a collection."""

    file_id: str
    attributes: AttributeMap = {}
    chunking_strategy: ChunkingStrategy | None = None


class UpdateMember(BaseModel):
    """New attributes of a file in a collection; null takes all away."""

    model_config = ConfigDict(extra="ignore")

    attributes: AttributeMap | None


class CreateBatch(Body):
    """Files for a collection: by id, or each with its own attributes and chunks."""

    file_ids: FileIds = []
    files: Annotated[list[CreateMember], Field(max_length=MOST_FILES)] = []
    attributes: AttributeMap = {}
    chunking_strategy: ChunkingStrategy | None = None

    @model_validator(mode="after")
    def _one_of_both(self) -> CreateBatch:
        if bool(self.file_ids) == bool(self.files):
            raise ValueError("give either 'file_ids' or 'files'")
        return self

    @property
    def members(self) -> list[CreateMember]:
        """What is to be added."""
        if self.files:
            return self.files
        return [
            CreateMember.model_construct(
                file_id=id, attributes=self.attributes, chunking_strategy=self.chunking_strategy
            )
            for id in self.file_ids
        ]


class RankingOptions(Body):
    """How results are chosen."""

    ranker: str = Field("auto", description="There is one, whatever this says.")
    score_threshold: float = Field(0.0, ge=0, le=1, description="Least score, 0 to 1.")


class SearchVectorStore(Body):
    """A search without an answer."""

    query: (
        Annotated[str, Field(min_length=1)]
        | Annotated[list[Annotated[str, Field(min_length=1)]], Field(min_length=1, max_length=16)]
    )
    filters: Filter | None = None
    max_num_results: int = Field(10, ge=1, le=50, strict=True)
    ranking_options: RankingOptions = RankingOptions()
    rewrite_query: bool = Field(
        False, strict=True, description="Let the model write the query for the search."
    )

    @property
    def queries(self) -> list[str]:
        """The queries, of which there is at least one."""
        return [self.query] if isinstance(self.query, str) else self.query


class ListQuery(BaseModel):
    """Which page of a list."""

    limit: int = Field(20, ge=1, le=100)
    order: Order = "desc"
    after: str | None = None
    before: str | None = None

    @property
    def cursor(self) -> Cursor:
        """The same for the catalog."""
        return Cursor(self.limit, self.order == "desc", self.after, self.before)


class MembersQuery(ListQuery):
    """Which page of a collection's files."""

    filter: State | None = None


class FilesQuery(ListQuery):
    """Which page of the files."""

    limit: int = Field(10_000, ge=1, le=10_000)
    purpose: str | None = None


def query(model: type[Query]) -> Query:
    """The parameters of the request's address. Raises InvalidRequest."""
    return validate(model, {name: value for name, value in request.args.items() if value != ""})
