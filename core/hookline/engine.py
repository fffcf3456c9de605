"""The engine boundary: what a generator is asked (`Job`) and what it says (`Piece`).

An engine turns prompts of token ids into tokens. It knows nothing of HTTP, chat messages,
tools or thinking. Everything here is plain data, or a protocol that a third party can fulfil.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, Protocol, runtime_checkable

from hookline.images import Image

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

FinishReason = Literal["stop", "length", "tool_calls", "cancelled"]


@dataclass(frozen=True, slots=True)
class Sampling:
    """How the next token is chosen. The defaults are greedy and change nothing.

    ``temperature`` 0 is greedy; ``top_k`` 0, ``top_p`` 1 and ``min_p`` 0 are off. Penalties look
    at the generated tokens (``presence``, ``frequency``: OpenAI's meaning) and at prompt and
    generated tokens (``repetition``: CTRL's divisor, 1 is off). ``seed`` None draws a fresh one.
    """

    temperature: float = 0.0
    top_p: float = 1.0
    top_k: int = 0
    min_p: float = 0.0
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0
    repetition_penalty: float = 1.0
    logit_bias: Mapping[int, float] = field(default_factory=dict)
    seed: int | None = None


@dataclass(frozen=True, slots=True)
class TopLogprob:
    """One of the likeliest tokens at a place, under the model's own distribution."""

    id: int
    text: str
    raw: bytes
    logprob: float


@dataclass(frozen=True, slots=True)
class Token:
    """One generated token.

    ``text`` is what it adds to the answer: empty while a character is still incomplete.
    ``raw`` are the token's own bytes. ``special`` marks control tokens, whose text no client
    should see. ``logprob`` and ``top`` are there when the job asked for them.
    """

    id: int
    text: str
    raw: bytes = b""
    special: bool = False
    logprob: float | None = None
    top: tuple[TopLogprob, ...] = ()


@dataclass(frozen=True, slots=True)
class Queued:
    """Waiting; ``position`` 1 is next."""

    position: int


@dataclass(frozen=True, slots=True)
class Prefill:
    """Reading the prompt: ``done`` of ``total`` tokens."""

    done: int
    total: int


@dataclass(frozen=True, slots=True)
class Decode:
    """Writing: ``tokens`` so far, in ``decode_ms``."""

    tokens: int
    decode_ms: float


Progress = Queued | Prefill | Decode


@dataclass(frozen=True, slots=True)
class Timings:
    """What was measured of a job so far, in milliseconds and tokens."""

    queue_ms: float = 0.0
    prompt_tokens: int = 0
    cached_tokens: int = 0
    prompt_ms: float = 0.0
    predicted_n: int = 0
    predicted_ms: float = 0.0
    images: int = 0
    vision_ms: float = 0.0


@dataclass(frozen=True, slots=True)
class Piece:
    """Something the engine has to say about a job: tokens, progress, the end, or several."""

    tokens: tuple[Token, ...] = ()
    progress: Progress | None = None
    timings: Timings = Timings()
    finish: FinishReason | None = None

    def merge(self, later: Piece) -> Piece:
        """This piece and the next as one, for a reader who was away."""
        progress = later.progress or self.progress
        return replace(later, tokens=self.tokens + later.tokens, progress=progress)


@runtime_checkable
class Constraint(Protocol):
    """What may come next in one job; lives as long as the job, and belongs to its worker thread.

    The engine calls ``mask`` before it samples, sets every logit to minus infinity whose mask is
    False, samples, and calls ``accept`` with the token.
    """

    def mask(self) -> npt.NDArray[np.bool_] | None:
        """True for each token id that may come next; shape ``(vocabulary,)``. None: all may.

        The end tokens are allowed exactly where the text may end.
        """
        ...

    def accept(self, token: int) -> None:
        """Takes the token that was sampled; it was allowed by the last mask."""
        ...

    @property
    def is_done(self) -> bool:
        """Whether nothing but an end token can come: the engine then stops."""
        ...


@runtime_checkable
class Forcing(Protocol):
    """A `Constraint` that can often tell the next token without a mask."""

    @property
    def forced(self) -> int | None:
        """The one token that can come next, where that is cheap to know; else None.

        The engine then need not ask the model, only let it read the token.
        """
        ...


class Grammar(Protocol):
    """A compiled constraint, shared by any number of jobs."""

    def start(self) -> Constraint:
        """A fresh constraint for one job. Called in the engine's worker thread; must be cheap."""
        ...


@dataclass(slots=True)
class Job:
    """What an engine is asked.

    ``prompt`` are token ids, at least one; each token of ``images[i]`` is the negative number
    ``-1 - i`` there (see `Engine.image_tokens`). ``max_tokens`` None means until the model ends or
    the context is full. ``stop_tokens`` end the answer besides the model's own end tokens and,
    like those, are not part of its text. ``logprobs`` is how many alternatives each token reports
    (0: only its own), None for no logprobs. ``grammar`` is what the answer must match;
    ``opening``, if any, constrains what comes before it, such as a thought, and ``grammar`` begins
    where that is done. ``ignore_end`` goes on past the model's end token (for benchmarks).
    ``extras`` carries what only one engine understands.
    """

    prompt: Sequence[int]
    max_tokens: int | None = None
    sampling: Sampling = field(default_factory=Sampling)
    stop_tokens: frozenset[int] = frozenset()
    logprobs: int | None = None
    grammar: Grammar | None = None
    opening: Grammar | None = None
    images: Sequence[Image] = ()
    ignore_end: bool = False
    extras: dict[str, Any] = field(default_factory=dict)


class Generation(Protocol):
    """A submitted job's answer. Closing it cancels the job; closing twice does no harm."""

    def __aiter__(self) -> AsyncIterator[Piece]: ...

    async def __anext__(self) -> Piece: ...

    async def aclose(self) -> None:
        """Cancels what still runs and frees its place."""
        ...


@dataclass(frozen=True, slots=True)
class Card:
    """What a loaded model is and can do.

    ``context`` counts tokens a request, prompt and answer together. ``exact_batches``: whether an
    answer is bit for bit the same alone and beside others. ``chat_template`` is the model's own.
    ``special_tokens`` are the texts that the tokenizer turns into control tokens.
    ``longest_token`` is the most bytes a token has, 0 where nobody knows: a text of more than
    ``context`` times as many characters is refused without being tokenized.
    """

    id: str
    engine: str
    context: int
    parallel: int
    exact_batches: bool
    vocabulary: int
    chat_template: str | None = None
    bos: str = ""
    eos: str = ""
    special_tokens: tuple[str, ...] = ()
    longest_token: int = 0
    tools: bool = False
    thinking: bool = False
    vision: bool = False
    details: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """Every token of a model: its bytes by id, the control tokens, and those that end an answer."""

    tokens: tuple[bytes, ...]
    special: frozenset[int]
    end: frozenset[int]


@dataclass(frozen=True, slots=True)
class EngineStats:
    """How busy an engine is right now."""

    running: int = 0
    queued: int = 0
    restarts: int = 0
    kv_bytes: int = 0
    kv_used_tokens: int = 0


EngineState = Literal["loading", "ready", "failed", "closed"]


class Engine(Protocol):
    """The thing that generates. All methods are called on the event loop and never block it,
    except ``tokenize``, ``detokenize`` and ``image_tokens``, which compute and may be called from
    any thread.
    """

    @property
    def state(self) -> EngineState:
        """``loading`` also covers a restart after a fault."""
        ...

    @property
    def card(self) -> Card:
        """What was loaded; only after ``load``."""
        ...

    async def load(self, progress: Callable[[float], None]) -> None:
        """Loads the model, reporting 0.0 to 1.0 from any thread. Raises StartError."""
        ...

    def tokenize(self, text: str, *, special: bool = False, bos: bool = False) -> list[int]:
        """Text to token ids. ``special``: control tokens written out in ``text`` become those
        tokens. ``bos``: begin as the model wants a text begun (which may add nothing)."""
        ...

    def detokenize(self, ids: Sequence[int]) -> str:
        """Token ids to text, control tokens written out, invalid bytes as U+FFFD.
        Raises ValueError for an id outside the vocabulary."""
        ...

    def image_tokens(self, image: Image, index: int = 0) -> list[int]:
        """What stands in `Job.prompt` for an image that is ``images[index]``.

        A number for every token that it takes: ``-1 - index`` for its own, and ids of text that
        the model wants around them. Raises InvalidRequest where the model cannot see it.
        """
        ...

    def vocabulary(self) -> Vocabulary:
        """All tokens; what compilers of constraints need. May be slow the first time."""
        ...

    def submit(self, job: Job) -> Generation:
        """Queues a job. Raises QueueFull or NoModel at once, so that a refusal is a status code.
        Iterating raises EngineUnavailable when the engine fails on the way."""
        ...

    def stats(self) -> EngineStats:
        """A snapshot; cheap."""
        ...

    async def close(self) -> None:
        """Cancels everything and frees the memory."""
        ...
