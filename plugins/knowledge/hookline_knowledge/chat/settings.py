"""``[plugin.knowledge.chat]``, and what a chat request can ask for."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue


class ChatSettings(BaseModel):
    """How passages get into a conversation."""

    model_config = ConfigDict(extra="forbid")

    passages: int = Field(6, ge=1, le=50, description="Most passages that an answer is given.")
    passage_tokens: int = Field(
        1500, ge=64, le=1_000_000, description="Most tokens of passages in a prompt."
    )
    answer_tokens: int = Field(
        512,
        ge=1,
        le=1_000_000,
        description="Tokens of the context that passages leave for the answer, where the request "
        "does not ask for fewer.",
    )
    rewrite: Literal["auto", "never"] = Field(
        "auto",
        description="Whether the model may write the query where the last message alone finds "
        "little and is short: 'and the second one?'",
    )
    strong_similarity: float | None = Field(
        None,
        ge=0,
        le=1,
        description="From this similarity on the last message alone is question enough; by "
        "default a third of the way from 'floor' to 1, which is 0.5 with minilm.",
    )
    snippet_characters: int = Field(
        300, ge=0, le=10_000, description="Most characters of a source's snippet."
    )


class KnowledgeFields(BaseModel):
    """What a request can ask for."""

    knowledge: JsonValue = Field(
        False,
        description="Answer from documents: true or 'all' for every collection, the name of one, "
        "or its id such as 'c:3'; false is off.",
        json_schema_extra={"type": ["boolean", "string", "null"]},
    )
