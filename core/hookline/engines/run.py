"""A job on its way through a worker: what the generator says of it, and what its reader reads."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import AsyncIterator, Callable

from hookline.engine import (
    Decode,
    FinishReason,
    Job,
    Piece,
    Prefill,
    Progress,
    Queued,
    Timings,
    Token,
)
from hookline.errors import ApiError, EngineUnavailable

log = logging.getLogger(__name__)


class Run:
    """A job on its way through the worker; the generator's side of it."""

    def __init__(self, job: Job, spoke: Callable[[Run], None]) -> None:
        self.job = job
        self.cancelled = False
        self.ended = False
        self._spoke = spoke
        self._pieces: deque[Piece] = deque()
        self._error: Exception | None = None
        self._wake = asyncio.Event()
        self._queued_at = time.perf_counter()
        self._started_at = self._queued_at
        self._first_token_at: float | None = None
        self._cached = 0
        self._predicted = 0
        self._vision_ms = 0.0

    def started(self) -> None:
        """The job leaves the queue."""
        self._started_at = time.perf_counter()

    def queued(self, position: int) -> None:
        """The job waits; 1 is next."""
        self._say(progress=Queued(position))

    def prefilled(self, done: int, *, cached: int) -> None:
        """``done`` tokens of the prompt are read, ``cached`` of them without computing."""
        self._cached = cached
        self._say(progress=Prefill(done, len(self.job.prompt)))

    def looked(self, seconds: float) -> None:
        """A part of an image was encoded, which took this long."""
        self._vision_ms += seconds * 1000

    def generated(self, *tokens: Token) -> None:
        """Tokens were sampled."""
        now = time.perf_counter()
        if self._first_token_at is None:
            self._first_token_at = now
        self._predicted += len(tokens)
        progress = Decode(self._predicted, (now - self._first_token_at) * 1000)
        self._say(tokens=tokens, progress=progress)

    def finish(self, reason: FinishReason) -> None:
        """The answer is complete."""
        if not self.ended:
            self._say(finish=reason)
            self.ended = True

    def fail(self, error: Exception) -> None:
        """This job alone cannot go on."""
        if not self.ended:
            self._error = _as_api_error(error)
            self.ended = True
            self._spoke(self)

    def timings(self) -> Timings:
        """What was measured so far."""
        now = time.perf_counter()
        first = self._first_token_at
        return Timings(
            queue_ms=(self._started_at - self._queued_at) * 1000,
            prompt_tokens=len(self.job.prompt),
            cached_tokens=self._cached,
            prompt_ms=((first or now) - self._started_at) * 1000,
            predicted_n=self._predicted,
            predicted_ms=0.0 if first is None else (now - first) * 1000,
            images=len(self.job.images),
            vision_ms=self._vision_ms,
        )

    def _say(
        self,
        *,
        tokens: tuple[Token, ...] = (),
        progress: Progress | None = None,
        finish: FinishReason | None = None,
    ) -> None:
        self._pieces.append(Piece(tokens, progress, self.timings(), finish))
        self._spoke(self)

    # The reader's side, on the event loop.

    def wake(self) -> None:
        """There is something to read."""
        self._wake.set()

    async def read(self) -> Piece | None:
        """All that waits as one piece; None after the end. Raises what the job failed with."""
        while not self._pieces:
            # The last piece comes before the end: after the end, one more look tells.
            if self.ended and not self._pieces:
                if self._error is not None:
                    raise self._error
                return None
            await self._wake.wait()
            self._wake.clear()
        piece = self._pieces.popleft()
        while self._pieces:
            piece = piece.merge(self._pieces.popleft())
        return piece


class Ticket:
    """The reader's end of a job. Dropping it without closing cancels too."""

    def __init__(self, run: Run) -> None:
        self._run = run

    def __aiter__(self) -> AsyncIterator[Piece]:
        return self

    async def __anext__(self) -> Piece:
        piece = await self._run.read()
        if piece is None:
            raise StopAsyncIteration
        return piece

    async def aclose(self) -> None:
        """Cancels the job if it still runs or waits: the worker looks between two steps."""
        self._run.cancelled = True

    def __del__(self) -> None:
        self._run.cancelled = True


def _as_api_error(error: Exception) -> ApiError:
    if isinstance(error, ApiError):
        return error
    log.error("a job failed", exc_info=error)
    return EngineUnavailable(f"The engine could not serve this request: {error}")
