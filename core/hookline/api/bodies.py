"""What clients get, as models for the reference page and for the tests that hold us to it.

Answers are written as plain dicts, which is faster; these models say what is in them.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, JsonValue

Finish = Literal["stop", "length", "tool_calls", "cancelled"]


class _Answer(BaseModel):
    model_config = ConfigDict(extra="allow")


class ErrorDetails(BaseModel):
    """What was wrong, which field, and a code for programs."""

    message: str
    type: str
    param: str | None
    code: str | None


class Error(BaseModel):
    """OpenAI's error body."""

    error: ErrorDetails


class TokenDetails(BaseModel):
    """Part of the tokens."""

    cached_tokens: int | None = None
    reasoning_tokens: int | None = None


class UsageBody(BaseModel):
    """Tokens of the request, all choices together."""

    prompt_tokens: int
    completion_tokens: int
    total_tokens: int
    prompt_tokens_details: TokenDetails
    completion_tokens_details: TokenDetails


class TimingsBody(BaseModel):
    """What was measured: milliseconds, tokens, tokens a second."""

    queue_ms: float
    prompt_ms: float
    prompt_per_second: float
    predicted_n: int
    predicted_ms: float
    predicted_per_second: float
    cached_tokens: int
    max_ctx: int
    dropped_messages: int
    images: int
    vision_ms: float


class AssistantMessage(_Answer):
    """The answer; ``reasoning_content`` and ``tool_calls`` are there when there are any."""

    role: Literal["assistant"]
    content: str | None
    refusal: str | None = None


class ChatChoice(BaseModel):
    """One answer."""

    index: int
    message: AssistantMessage
    logprobs: dict[str, JsonValue] | None
    finish_reason: Finish


class ChatCompletion(_Answer):
    """The body of a chat answer, besides the plugins' fields."""

    id: str
    object: Literal["chat.completion"]
    created: int
    model: str
    choices: list[ChatChoice]
    usage: UsageBody
    timings: TimingsBody


class TextChoice(BaseModel):
    """One completion."""

    index: int
    text: str
    logprobs: dict[str, JsonValue] | None
    finish_reason: Finish


class Completion(_Answer):
    """The body of a raw completion."""

    id: str
    object: Literal["text_completion"]
    created: int
    model: str
    choices: list[TextChoice]
    usage: UsageBody
    timings: TimingsBody


class Model(BaseModel):
    """A model; ``hookline`` says what it is and can do."""

    id: str
    object: Literal["model"]
    created: int
    owned_by: str
    loaded: bool
    hookline: dict[str, Any]


class ModelList(BaseModel):
    """The models."""

    object: Literal["list"]
    data: list[Model]


class Tokens(BaseModel):
    """Token ids and how many they are; old messages are dropped as a chat would drop them."""

    ids: list[int]
    count: int
    max_ctx: int
    dropped_messages: int


class Text(BaseModel):
    """The text of token ids."""

    text: str


class Health(_Answer):
    """Whether the server can answer."""

    status: Literal["ready", "loading", "failed", "stopping", "closed"]
    model: str
    running: int
    queued: int
    restarts: int
    plugins: list[dict[str, Any]]
