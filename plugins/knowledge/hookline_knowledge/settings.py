"""``[plugin.knowledge]``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, SecretStr, model_validator

from hookline.config import MayBePath
from hookline_knowledge.chat.settings import ChatSettings
from hookline_knowledge.parsing.settings import ParsingSettings
from hookline_knowledge.pictures.settings import PictureSettings


def _is_model_file(embedder: str, path: Path) -> bool:
    """Whether an embedder is a file or folder here: neither an address nor a name on the hub."""
    if embedder.startswith(("./", "../", "/", "~")):
        return True
    if "://" in embedder or ":" in embedder:
        return False
    return embedder.endswith(".gguf") or ("/" in embedder and path.exists())


class KnowledgeSettings(BaseModel):
    """Settings of the plugin."""

    model_config = ConfigDict(extra="forbid")

    embedder: Annotated[str, MayBePath(_is_model_file)] = Field(
        "minilm",
        min_length=1,
        description="What turns text into vectors: 'minilm', a .gguf file, owner/repo[:file] of "
        "the hub, the base URL of an OpenAI-compatible server, or the name of another plugin's.",
    )
    embedder_model: str | None = Field(
        None, description="The model to ask for at the base URL; by default its first that embeds."
    )
    embedder_api_key: SecretStr | None = Field(
        None, description="The key for the server at the base URL."
    )
    embedder_threads: int = Field(
        2, ge=1, le=64, description="Processor threads of an embedder that runs here."
    )
    query_prefix: str | None = Field(
        None, description="Written before each query; by default what the model was trained with."
    )
    document_prefix: str | None = Field(
        None, description="Written before each passage; by default what the model was trained with."
    )
    uri: Annotated[str | None, MayBePath(lambda uri, _: "://" not in uri)] = Field(
        None,
        description="Where the collections are kept: a folder, or s3://bucket/path; by default "
        "'knowledge' in data_dir.",
    )
    storage_options: dict[str, str] = Field(
        default={},
        description="How s3:// is reached: region, endpoint, allow_http, access_key_id, "
        "secret_access_key.",
    )
    floor: float | None = Field(
        None,
        ge=0,
        le=1,
        description="Least similarity of a passage to the question, 0 to 1; below it nothing is "
        "an answer. By default 0.25 with minilm, and with other models what is measured when they "
        "are first asked.",
    )
    chunk_tokens: int = Field(
        200, ge=16, le=4096, description="Most tokens of a passage, of the embedding model's."
    )
    chunk_overlap_tokens: int = Field(
        40, ge=0, le=2048, description="Tokens that neighbouring passages share; at most half."
    )
    parsing: ParsingSettings = Field(
        default=ParsingSettings(), description="What reading a file may cost."
    )
    pictures: PictureSettings = Field(
        default=PictureSettings(), description="Whether pictures are looked at."
    )
    chat: ChatSettings = Field(
        default=ChatSettings(), description="How passages get into a conversation."
    )

    @model_validator(mode="after")
    def _overlap_is_at_most_half(self) -> KnowledgeSettings:
        if self.chunk_overlap_tokens * 2 > self.chunk_tokens:
            raise ValueError("'chunk_overlap_tokens' must be at most half of 'chunk_tokens'")
        return self
