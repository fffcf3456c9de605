"""The choices of an answer at work: engine jobs, each with its own row of stages."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import AsyncExitStack, aclosing
from dataclasses import dataclass, field, replace

from hookline.engine import (
    FinishReason,
    Generation,
    Job,
    Piece,
    Progress,
    Timings,
)
from hookline.stream import Delta, Pipeline


@dataclass(slots=True)
class Choice:
    """One answer in the making."""

    index: int
    prompt: Sequence[int]
    generation: Generation
    pipeline: Pipeline
    timings: Timings = field(default_factory=Timings)
    finish: FinishReason | None = None
    predicted: int = 0

    async def events(self) -> AsyncGenerator[Event, None]:
        """What happens until the answer is complete; closing cancels the job."""
        async with aclosing(self.generation):
            async for piece in self.generation:
                yield Event(self, self._deltas(piece), piece.progress)
                if self.finish is not None:
                    return

    def _deltas(self, piece: Piece) -> list[Delta]:
        """Runs the tokens one by one, so that counts do not depend on how pieces were merged."""
        deltas: list[Delta] = []
        for token in piece.tokens:
            self.predicted += 1
            deltas += self.pipeline.feed(Delta(token.text, tokens=(token,)))
            if self.pipeline.finished:
                break
        if piece.finish is not None:
            deltas += self.pipeline.finish()
        self.timings = replace(piece.timings, predicted_n=self.predicted)
        self.finish = self.pipeline.finished or piece.finish
        return merged(deltas)


@dataclass(frozen=True, slots=True)
class Event:
    """News of one choice."""

    choice: Choice
    deltas: list[Delta]
    progress: Progress | None

    @property
    def finish(self) -> FinishReason | None:
        """Why the choice ended; None while it goes on."""
        return self.choice.finish


def copies(job: Job, n: int) -> list[Job]:
    """The job for each of ``n`` choices: a seed is counted up, so that they differ."""
    seed = job.sampling.seed
    return [
        job
        if index == 0 or seed is None
        else replace(job, sampling=replace(job.sampling, seed=seed + index))
        for index in range(n)
    ]


async def events(choices: Sequence[Choice]) -> AsyncGenerator[Event, None]:
    """The news of all choices as they come, until the last has ended."""
    streams = [choice.events() for choice in choices]
    if len(streams) == 1:
        async with aclosing(streams[0]) as only:
            async for event in only:
                yield event
        return
    async with AsyncExitStack() as stack:
        for stream in streams:
            await stack.enter_async_context(aclosing(stream))
        async for event in _as_they_come(streams, stack):
            yield event


async def _as_they_come(
    streams: Sequence[AsyncIterator[Event]], stack: AsyncExitStack
) -> AsyncIterator[Event]:
    reads: dict[asyncio.Future[Event | None], AsyncIterator[Event]] = {}

    async def stop_reading() -> None:
        for read in reads:
            read.cancel()
        if reads:
            await asyncio.wait(reads)

    def read_next(stream: AsyncIterator[Event]) -> None:
        reads[asyncio.ensure_future(anext(stream, None))] = stream

    stack.push_async_callback(stop_reading)
    for stream in streams:
        read_next(stream)
    while reads:
        done, _ = await asyncio.wait(reads, return_when=asyncio.FIRST_COMPLETED)
        for read in done:
            stream = reads.pop(read)
            event = read.result()
            if event is not None:
                read_next(stream)
                yield event


def merged(deltas: Sequence[Delta]) -> list[Delta]:
    """Neighbours on the same text channel as one delta."""
    result: list[Delta] = []
    for delta in deltas:
        last = result[-1] if result else None
        if last is not None and _joins(last, delta):
            result[-1] = replace(
                last,
                text=last.text + delta.text,
                tokens=last.tokens + delta.tokens,
                finish=delta.finish,
            )
        else:
            result.append(delta)
    return result


def _joins(last: Delta, delta: Delta) -> bool:
    return last.channel == delta.channel != "tool_call" and last.finish is None
