"""``POST /v1/embeddings``, as OpenAI has it."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Mapping, Sequence
from typing import Any, Literal, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt
from pydantic import BaseModel, ConfigDict, Field, StrictInt, field_validator, model_validator
from quart import Blueprint, Response

from hookline import ContextLengthExceeded, Embedder, InvalidRequest, Server, Usage
from hookline.config import resolve_model
from hookline.routes import describe, json_response, read_json, validate
from hookline_knowledge.embedding import EmbedderOf

MOST_INPUTS = 2048


class EmbeddingsRequest(BaseModel):
    """What to embed, and how the vectors are to be written."""

    model_config = ConfigDict(extra="ignore")

    input: str | list[str] | list[StrictInt] | list[list[StrictInt]] = Field(
        description="A text, up to 2048 texts, or the same as ids of the model's tokens."
    )
    model: str | None = Field(None, description="Not needed: the embedding model answers.")
    encoding_format: Literal["float", "base64"] = Field(
        "float", description="Numbers, or base64 of them as 32-bit floats, little-endian."
    )
    dimensions: int | None = Field(
        None, ge=1, description="Keeps so many numbers of each vector, scaled to length 1."
    )
    input_type: Literal["query", "document"] = Field(
        "document", description="Whether these are questions or passages; some models ask that."
    )
    user: str | None = Field(None, description="Ignored.")

    @model_validator(mode="before")
    @classmethod
    def _null_is_absent(cls, data: Any) -> Any:
        if isinstance(data, Mapping):
            return {name: value for name, value in data.items() if value is not None}
        return data

    @field_validator("input", mode="after")
    @classmethod
    def _holds_something(cls, value: Any) -> Any:
        if not value:
            raise ValueError("must not be empty")
        if isinstance(value, list) and not all(item != "" and item != [] for item in value):
            raise ValueError("must not hold anything empty")
        if isinstance(value, list) and not isinstance(value[0], int) and len(value) > MOST_INPUTS:
            raise ValueError(f"has {len(value)} texts; the most at once are {MOST_INPUTS}")
        return value

    @property
    def texts(self) -> list[str] | None:
        """The input as texts; None where it is token ids."""
        texts = [self.input] if isinstance(self.input, str) else self.input
        return [str(text) for text in texts] if isinstance(texts[0], str) else None

    @property
    def token_lists(self) -> list[list[int]]:
        """The input as token ids; none where it is texts."""
        if self.texts is not None:
            return []
        one = isinstance(self.input[0], int)
        return [self.input] if one else self.input  # type: ignore[list-item,return-value]


class Embedding(BaseModel):
    """One vector."""

    object: Literal["embedding"]
    index: int
    embedding: list[float] | str


class EmbeddingsUsage(BaseModel):
    """Tokens that were read."""

    prompt_tokens: int
    total_tokens: int


class Embeddings(BaseModel):
    """The vectors, in the order of the input."""

    object: Literal["list"]
    data: list[Embedding]
    model: str
    usage: EmbeddingsUsage


@runtime_checkable
class Tokenizing(Protocol):
    """An embedder whose tokenizer is known."""

    max_tokens: int

    def count(self, text: str) -> int:
        """How many tokens a text has."""
        ...

    def detokenize(self, ids: Sequence[int]) -> str:
        """The text of token ids. Raises ValueError for an id outside the vocabulary."""
        ...


def add_route(routes: Blueprint, server: Server, embedder_of: EmbedderOf) -> None:
    """Adds the route."""

    @routes.post("/v1/embeddings")
    @describe(request=EmbeddingsRequest, response=Embeddings)
    async def embeddings() -> Response:
        """Turns texts into vectors whose cosine tells how near their meanings are."""
        asked = validate(EmbeddingsRequest, await read_json())
        embedder = await embedder_of()
        _refuse_chat_model(server, asked.model, embedder)
        _refuse_more_dimensions(asked.dimensions, embedder)
        texts = await asyncio.to_thread(_texts, asked, embedder)
        usage = Usage()
        vectors = await embedder.embed(texts, kind=asked.input_type, usage=usage)
        written = await asyncio.to_thread(_written, vectors, asked)
        return json_response(
            {
                "object": "list",
                "data": [
                    {"object": "embedding", "index": index, "embedding": vector}
                    for index, vector in enumerate(written)
                ],
                "model": embedder.name,
                "usage": {
                    "prompt_tokens": usage.prompt_tokens,
                    "total_tokens": usage.prompt_tokens,
                },
            }
        )


def _refuse_chat_model(server: Server, model: str | None, embedder: Embedder) -> None:
    """Raises InvalidRequest where a model is named that this server has for other things."""
    others = {*server.settings.models, resolve_model(server.settings)[0]}
    if model in others and model != embedder.name:
        raise InvalidRequest(
            f"The model '{model}' is not the one that embeds. Leave 'model' out, or name "
            f"'{embedder.name}'.",
            param="model",
        )


def _refuse_more_dimensions(wanted: int | None, embedder: Embedder) -> None:
    if wanted is not None and wanted > embedder.dimensions:
        raise InvalidRequest(
            f"'dimensions': {wanted} are more than the {embedder.dimensions} that "
            f"'{embedder.name}' has.",
            param="dimensions",
        )


def _texts(asked: EmbeddingsRequest, embedder: Embedder) -> list[str]:
    """The input as texts of a length that the model reads. Raises InvalidRequest."""
    texts = asked.texts
    if not isinstance(embedder, Tokenizing):
        if texts is None:
            raise InvalidRequest(
                f"'input': token ids are not possible with '{embedder.name}'. Send text.",
                param="input",
            )
        return texts
    if texts is None:
        texts = [_text_of(embedder, ids, place) for place, ids in enumerate(asked.token_lists)]
    for place, text in enumerate(texts):
        if (count := embedder.count(text)) > embedder.max_tokens:
            raise ContextLengthExceeded(
                f"'input[{place}]' has {count} tokens, and '{embedder.name}' reads "
                f"{embedder.max_tokens}. Cut it into parts.",
                param="input",
            )
    return texts


def _text_of(embedder: Tokenizing, ids: Sequence[int], place: int) -> str:
    try:
        return embedder.detokenize(ids)
    except ValueError as error:
        raise InvalidRequest(f"'input[{place}]': {error}.", param="input") from error


def _written(
    vectors: Sequence[Sequence[float]], asked: EmbeddingsRequest
) -> list[list[float]] | list[str]:
    """The vectors as the answer has them."""
    matrix: npt.NDArray[np.float32] = np.asarray(vectors, np.float32)
    if asked.dimensions is not None:
        matrix = matrix[:, : asked.dimensions]
        lengths = np.linalg.norm(matrix, axis=1, keepdims=True)
        matrix = matrix / np.maximum(lengths, np.finfo(np.float32).tiny)
    if asked.encoding_format == "float":
        rows: list[list[float]] = matrix.tolist()
        return rows
    return [base64.b64encode(row.astype("<f4").tobytes()).decode() for row in matrix]
