"""One answer on its way here."""

from __future__ import annotations

import json
import time
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

import httpx

from hookline import EngineUnavailable, Piece, Timings, Token, TopLogprob
from hookline.engine import FinishReason

if TYPE_CHECKING:
    from hookline_upstream.engine import UpstreamEngine


class UpstreamGeneration:
    """Reads the stream of a job. Closing it closes the connection, which ends the work there."""

    def __init__(self, engine: UpstreamEngine, body: dict[str, Any], prompt_tokens: int) -> None:
        self._engine = engine
        self._prompt_tokens = prompt_tokens
        self._is_over = False
        self._pieces = self._read(body)

    def __aiter__(self) -> UpstreamGeneration:
        return self

    async def __anext__(self) -> Piece:
        return await anext(self._pieces)

    async def aclose(self) -> None:
        """Ends it where it stands; twice does no harm."""
        await self._pieces.aclose()
        self._end(had_place=False)

    async def _read(self, body: dict[str, Any]) -> AsyncGenerator[Piece, None]:
        waited = await self._engine.place()
        try:
            began = time.perf_counter()
            response = await self._engine.open(body)
            clock = _Clock(waited, began, self._prompt_tokens)
            try:
                async with aclosing(_pieces(response, clock)) as pieces:
                    async for piece in pieces:
                        yield piece
            finally:
                await response.aclose()
        finally:
            self._end(had_place=True)

    def _end(self, *, had_place: bool) -> None:
        if not self._is_over:
            self._is_over = True
            self._engine.leave(had_place=had_place)


class _Clock:
    """What is measured of one answer."""

    def __init__(self, waited: float, began: float, prompt_tokens: int) -> None:
        self._queue_ms, self._began = waited * 1000, began
        self._prompt_tokens = prompt_tokens
        self._first = 0.0
        self.said = 0
        self.cached = 0

    def timings(self, tokens: int) -> Timings:
        now = time.perf_counter()
        if tokens and not self._first:
            self._first = now
        self.said += tokens
        return Timings(
            queue_ms=self._queue_ms,
            prompt_tokens=self._prompt_tokens,
            cached_tokens=self.cached,
            prompt_ms=((self._first or now) - self._began) * 1000,
            predicted_n=self.said,
            predicted_ms=(now - self._first) * 1000 if self._first else 0.0,
        )


async def _pieces(response: httpx.Response, clock: _Clock) -> AsyncGenerator[Piece, None]:
    """The answer, piece by piece. The last one waits for ``usage``, which tells how many tokens
    there were where a chunk held several. Raises EngineUnavailable where the stream breaks."""
    finish: FinishReason | None = None
    try:
        async for line in response.aiter_lines():
            if not line.startswith("data: ") or line == "data: [DONE]":
                continue
            chunk = json.loads(line.removeprefix("data: "))
            if "error" in chunk:
                raise EngineUnavailable(f"The upstream failed: {chunk['error']}")
            for choice in chunk.get("choices", ()):
                finish = _finish(choice) or finish
                if tokens := _tokens(choice):
                    yield Piece(tokens, timings=clock.timings(len(tokens)))
            unseen = _usage(chunk, clock)
            if finish and unseen is not None:
                yield Piece(
                    (Token(-1, "", special=True),) * unseen,
                    timings=clock.timings(unseen),
                    finish=finish,
                )
                return
    except (httpx.HTTPError, ValueError) as error:
        raise EngineUnavailable(f"The upstream's answer broke off: {error}") from error
    if finish is None:
        raise EngineUnavailable("The upstream's answer broke off without a reason.")
    yield Piece(timings=clock.timings(0), finish=finish)


def _finish(choice: Mapping[str, Any]) -> FinishReason | None:
    reason = choice.get("finish_reason")
    return None if reason is None else "length" if reason == "length" else "stop"


def _usage(chunk: Mapping[str, Any], clock: _Clock) -> int | None:
    """How many tokens were said beyond those seen; None where the chunk has no usage."""
    usage = chunk.get("usage")
    if not usage:
        return None
    details = usage.get("prompt_tokens_details") or {}
    clock.cached = int(details.get("cached_tokens") or 0)
    return max(0, int(usage["completion_tokens"]) - clock.said)


def _tokens(choice: Mapping[str, Any]) -> tuple[Token, ...]:
    """The tokens of a chunk: one, or with log probabilities as many as it tells."""
    told = choice.get("logprobs") or {}
    texts = told.get("tokens")
    if not texts:
        text = choice.get("text") or ""
        return (Token(-1, text, text.encode()),) if text else ()
    tops = told.get("top_logprobs") or [{}] * len(texts)
    return tuple(
        Token(-1, text, text.encode(), logprob=logprob, top=_top(top or {}))
        for text, logprob, top in zip(texts, told["token_logprobs"], tops, strict=True)
    )


def _top(told: Mapping[str, float]) -> tuple[TopLogprob, ...]:
    return tuple(TopLogprob(-1, text, text.encode(), value) for text, value in told.items())
