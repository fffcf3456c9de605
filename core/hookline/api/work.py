"""A generation request at work: what must happen when it ends, however it ends."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any

from hookline.api.choices import Choice
from hookline.api.request_log import Note, note_of_request
from hookline.api.request_scope import request_stack
from hookline.api.usage import account, timings_body
from hookline.engine import Job
from hookline.errors import ApiError, InvalidRequest
from hookline.exchange import Exchange
from hookline.kernel import Kernel
from hookline.stream import DropSpecial, Pipeline, StopStrings


@dataclass(slots=True)
class Work:
    """Kernel, exchange and the exit stack of the current request.

    ``error`` is what `settle` is told: until the answer is complete, that the client left.
    """

    kernel: Kernel
    exchange: Exchange
    stack: AsyncExitStack
    note: Note = field(default_factory=note_of_request)
    choices: list[Choice] = field(default_factory=list)
    error: BaseException | None = field(
        default_factory=lambda: asyncio.CancelledError("the client left")
    )

    @classmethod
    def begin(cls, kernel: Kernel, exchange: Exchange) -> Work:
        """At work from now until the request is over. Raises ShuttingDown."""
        work = cls(kernel, exchange, request_stack())
        work.note.exchange = exchange
        work.stack.enter_context(kernel.at_work())
        work.stack.push_async_callback(work._settle)
        return work

    @contextmanager
    def remembered(self) -> Iterator[None]:
        """Remembers an error on its way out, for `settle`.

        A generator that is closed is none: its client left, or has all of the answer.
        """
        try:
            yield
        except GeneratorExit:
            raise
        except BaseException as error:
            self.error = error
            raise

    async def submit(self, jobs: Sequence[Job], stops: Sequence[str]) -> None:
        """Queues all jobs of the request, or none. Raises QueueFull, NoModel, or InvalidRequest
        for more than the queue ever takes."""
        most = self.kernel.engine.card.parallel + self.kernel.settings.server.max_queue
        if len(jobs) > most:
            raise InvalidRequest(
                f"This asks for {len(jobs)} answers at once, and the server takes {most}.",
                param="n",
            )
        try:
            self._submit(jobs, stops)
        except ApiError:
            for choice in self.choices:
                await choice.generation.aclose()
            self.choices.clear()
            raise

    def _submit(self, jobs: Sequence[Job], stops: Sequence[str]) -> None:
        for index, job in enumerate(jobs):
            stages = self.kernel.plugins.stages(self.exchange, job)
            pipeline = Pipeline([*stages, DropSpecial(), StopStrings(stops)])
            generation = self.kernel.engine.submit(job)
            self.stack.push_async_callback(generation.aclose)
            self.choices.append(Choice(index, job.prompt, generation, pipeline))

    def complete(self, *, usage: bool = True) -> dict[str, Any]:
        """The answer is complete: the closing fields, timings, and usage unless a chunk of its own
        follows with it: clients add up what chunks say."""
        self.error = None
        account(self.exchange, self.choices)
        closing = self.kernel.plugins.closing_fields(self.exchange)
        timings = timings_body(self.exchange)
        counted = {"usage": self.exchange.usage.body()} if usage else {}
        return {**counted, "timings": timings, **closing}

    async def _settle(self) -> None:
        self.note.left = isinstance(self.error, asyncio.CancelledError)
        if self.choices:
            account(self.exchange, self.choices)
        for choice in self.choices:
            self.kernel.metrics.choice(choice.timings, choice.finish or "cancelled")
        await self.kernel.plugins.settle(self.exchange, self.error)
