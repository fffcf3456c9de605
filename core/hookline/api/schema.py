"""What clients may send, as models: they validate, and they are the reference page.

Every optional field may be ``null``, meaning absent. Fields that nobody declared stay in
``model_extra`` and are ignored.
"""

from __future__ import annotations

from typing import Annotated, Any, cast

from pydantic import BaseModel, ConfigDict, Field, JsonValue, model_validator

from hookline.engine import Sampling
from hookline.errors import InvalidRequest
from hookline.messages import Message, field_error, without_nulls

NonEmpty = Annotated[str, Field(min_length=1)]
Count = Annotated[int, Field(ge=1)]
TokenId = Annotated[int, Field(ge=0)]
# fail_fast: a long list of wrong items must not become as many errors, which takes seconds.
TokenIds = Annotated[list[TokenId], Field(min_length=1, fail_fast=True)]
Texts = Annotated[list[str], Field(fail_fast=True)]
ManyTokenIds = Annotated[list[TokenIds], Field(fail_fast=True)]
Messages = Annotated[list[Message], Field(min_length=1, fail_fast=True)]


class Body(BaseModel):
    """A request body: strict types, ``null`` means absent, unknown fields allowed."""

    model_config = ConfigDict(strict=True, extra="allow")

    @model_validator(mode="before")
    @classmethod
    def _null_is_absent(cls, data: Any) -> Any:
        return without_nulls(data)


class StreamOptions(Body):
    """How to stream."""

    include_usage: bool = Field(False, description="Send usage in one extra last chunk.")


class SamplingFields(Body):
    """The sampling parameters that chat and raw completions share."""

    temperature: float = Field(
        0.0, ge=0, le=2, allow_inf_nan=False, description="0 (default) is greedy; above it samples."
    )
    top_p: float = Field(
        1.0, ge=0, le=1, description="Keep the likeliest up to this mass; 1 = off."
    )
    top_k: int = Field(0, ge=-1, description="Keep the k likeliest; 0 or -1 = off.")
    min_p: float = Field(0.0, ge=0, le=1, description="Drop below this share of the likeliest.")
    presence_penalty: float = Field(0.0, ge=-2, le=2)
    frequency_penalty: float = Field(0.0, ge=-2, le=2)
    repetition_penalty: float = Field(1.0, gt=0, le=10, description="1 = off.")
    logit_bias: dict[str, Annotated[float, Field(ge=-100, le=100)]] = Field(
        default={}, max_length=1024, description="Token id to a bias on its logit."
    )
    seed: int | None = Field(
        None, ge=-(2**63), lt=2**63, description="The same seed gives the same answer."
    )

    def sampling(self, vocabulary: int) -> Sampling:
        """These parameters for the engine. Raises InvalidRequest for a bias on no token."""
        return Sampling(
            temperature=self.temperature,
            top_p=self.top_p,
            top_k=min(max(0, self.top_k), vocabulary),
            min_p=self.min_p,
            presence_penalty=self.presence_penalty,
            frequency_penalty=self.frequency_penalty,
            repetition_penalty=self.repetition_penalty,
            logit_bias={_token_id(key, vocabulary): bias for key, bias in self.logit_bias.items()},
            seed=self.seed,
        )


class GenerationFields(SamplingFields):
    """What every request that generates has."""

    model: str | None = Field(None, description="The loaded model answers, whatever this says.")
    stream: bool = Field(False, description="Answer as server-sent events.")
    stream_options: StreamOptions = StreamOptions()
    max_tokens: Count | None = Field(None, description="Most tokens of the answer.")
    stop: NonEmpty | Annotated[list[NonEmpty], Field(max_length=16)] = Field(
        default=[], description="One string or up to 16 at which the answer ends."
    )
    n: int = Field(1, ge=1, le=8, description="How many answers.")

    @property
    def stops(self) -> list[str]:
        """The stop strings as a list."""
        return [self.stop] if isinstance(self.stop, str) else self.stop

    @property
    def limit(self) -> int | None:
        """Most tokens of one answer."""
        return self.max_tokens

    @property
    def logprobs_wanted(self) -> int | None:
        """How many alternatives a token should report; None for no logprobs."""
        raise NotImplementedError


class ChatRequest(GenerationFields):
    """The body of ``POST /v1/chat/completions``, without the plugins' fields."""

    messages: Messages
    max_completion_tokens: Count | None = Field(None, description="The smaller limit wins.")
    logprobs: bool = Field(False, description="Report the log probability of each token.")
    top_logprobs: int = Field(0, ge=0, le=20, description="And of its likeliest alternatives.")
    chat_template_kwargs: dict[str, JsonValue] = Field(
        default={}, description="Variables for the chat template."
    )

    @model_validator(mode="after")
    def _top_needs_logprobs(self) -> ChatRequest:
        if self.top_logprobs and not self.logprobs:
            raise field_error("top_logprobs", "needs 'logprobs': true")
        return self

    @property
    def limit(self) -> int | None:
        """The smaller of both limits."""
        limits = [n for n in (self.max_tokens, self.max_completion_tokens) if n is not None]
        return min(limits, default=None)

    @property
    def logprobs_wanted(self) -> int | None:
        """How many alternatives a token should report."""
        return self.top_logprobs if self.logprobs else None


class CompletionRequest(GenerationFields):
    """The body of ``POST /v1/completions``."""

    prompt: str | Texts | TokenIds | ManyTokenIds = Field(
        description="Text or token ids, one prompt or several."
    )
    logprobs: Annotated[int, Field(ge=0, le=20)] | None = Field(
        None, description="Report log probabilities, of this many alternatives."
    )
    echo: bool = Field(False, description="Begin the answer with the prompt.")

    @property
    def prompts(self) -> list[str | list[int]]:
        """The prompts as a list."""
        if isinstance(self.prompt, str):
            return [self.prompt]
        if self.prompt and isinstance(self.prompt[0], int):
            return [self.prompt]
        return cast(list[str | list[int]], self.prompt)

    @property
    def logprobs_wanted(self) -> int | None:
        """How many alternatives a token should report."""
        return self.logprobs


class TokenizeRequest(Body):
    """The body of ``POST /v1/tokenize``: either a text or a conversation."""

    text: str | None = Field(None, description="Plain text.")
    special: bool = Field(
        False, description="Take control tokens that are written out in 'text' for what they are."
    )
    messages: Messages | None = Field(None, description="Counted with the chat template.")

    @model_validator(mode="after")
    def _one_of_both(self) -> TokenizeRequest:
        if (self.text is None) == (self.messages is None):
            raise field_error("text", "give either 'text' or 'messages'")
        return self


class DetokenizeRequest(Body):
    """The body of ``POST /v1/detokenize``."""

    ids: Annotated[list[TokenId], Field(fail_fast=True)]


def _token_id(key: str, vocabulary: int) -> int:
    # Python refuses to read numbers of thousands of digits.
    if not key.isdecimal() or len(key) > 10 or int(key) >= vocabulary:
        raise InvalidRequest(
            f"'logit_bias': '{key[:20]}' is no token id; they go from 0 to {vocabulary - 1}.",
            param="logit_bias",
        )
    return int(key)
