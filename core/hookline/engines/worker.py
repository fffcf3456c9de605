"""The one thread that owns a generator.

A `Generator` is synchronous and never shared: every method runs in the worker's thread. The worker
keeps the queue, starts jobs in the order they came, hands pieces to the event loop (one wake-up a
step, pieces that wait are merged), cancels between steps, and rebuilds the generator after a fault.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import logging
import threading
from collections import deque
from collections.abc import Callable, Iterable
from typing import Protocol

from hookline.engine import (
    EngineState,
    EngineStats,
    Generation,
    Job,
)
from hookline.engines.run import Run, Ticket
from hookline.errors import EngineUnavailable, NoModel, QueueFull, StartError

log = logging.getLogger(__name__)

RETRY_SECONDS = (1.0, 2.0, 5.0, 15.0, 60.0)
"""Pauses between attempts to bring a failed generator back."""


class Generator(Protocol):
    """What a worker drives."""

    @property
    def parallel(self) -> int:
        """Jobs that run at once; known after `load`."""
        ...

    def load(self, progress: Callable[[float], None]) -> None:
        """Loads, or loads again after `close`."""
        ...

    def start(self, run: Run) -> None:
        """Takes a job. Raising refuses this job only."""
        ...

    def step(self) -> None:
        """One step for the jobs that run, reported through their `Run`.

        Raising means that the generator is broken: everyone it serves is told, and it is rebuilt.
        A fault of one job alone belongs into `Run.fail`.
        """
        ...

    def drop(self, run: Run) -> None:
        """Frees the place of a job that was cancelled."""
        ...

    def idle(self, wanted: Callable[[], bool]) -> bool:
        """Does a little of what can wait; False when there is nothing left to do.

        ``wanted`` says that a job has come: what was begun can be broken off for it.
        """
        ...

    def stats(self, stats: EngineStats) -> EngineStats:
        """Adds what only the generator knows. Called from any thread."""
        ...

    def close(self) -> None:
        """Frees everything; harmless when nothing is loaded."""
        ...


class Worker:
    """Drives a generator in a thread of its own."""

    def __init__(self, generator: Generator, *, max_queue: int, name: str) -> None:
        self._generator = generator
        self._max_queue = max_queue
        self._name = name
        self._changed = threading.Condition()
        self._waiting: deque[Run] = deque()
        self._running: list[Run] = []
        self._spoke: dict[Run, None] = {}
        self._closing = False
        self._restarts = 0
        self._loaded = False
        self._queue_moved = False
        self._thread: threading.Thread | None = None
        self.state: EngineState = "loading"

    # On the event loop.

    async def load(self, progress: Callable[[float], None]) -> None:
        """Starts the thread and waits until the generator is loaded. Raises StartError."""
        self._loop = asyncio.get_running_loop()
        loaded: asyncio.Future[None] = self._loop.create_future()

        def done(error: Exception | None) -> None:
            if not loaded.done():
                loaded.set_result(None) if error is None else loaded.set_exception(error)

        self._thread = threading.Thread(
            target=self._main, args=(progress, done), name=self._name, daemon=True
        )
        self._thread.start()
        await loaded

    def submit(self, job: Job) -> Ticket:
        """Queues a job. Raises NoModel or QueueFull at once."""
        with self._changed:
            if self._closing or not self._loaded or self.state == "failed":
                raise NoModel("The model is not loaded. Try again in a moment.", retry_after=2)
            free = self._generator.parallel - len(self._running)
            waiting = sum(not run.cancelled for run in self._waiting)
            if waiting >= self._max_queue + max(0, free):
                raise QueueFull(
                    "As many requests are waiting as may wait ([server] max_queue = "
                    f"{self._max_queue}). Try again later.",
                    retry_after=2,
                )
            run = Run(job, self._note)
            self._waiting.append(run)
            self._queue_moved = True
            self._changed.notify()
        return Ticket(run)

    def stats(self) -> EngineStats:
        """A snapshot."""
        running, waiting = len(self._running), len(self._waiting)
        return self._generator.stats(
            EngineStats(running=running, queued=waiting, restarts=self._restarts)
        )

    async def close(self) -> None:
        """Ends what runs as ``cancelled``, frees the generator and joins the thread."""
        with self._changed:
            self._closing = True
            for run in (*self._waiting, *self._running):
                run.cancelled = True
            self._changed.notify()
        if self._thread is not None:
            await asyncio.to_thread(self._thread.join)
        self.state = "closed"

    # In the worker's thread.

    def _main(
        self, progress: Callable[[float], None], done: Callable[[Exception | None], None]
    ) -> None:
        try:
            self._generator.load(progress)
        except Exception as error:
            self.state = "failed"
            self._generator.close()
            failure = (
                error if isinstance(error, StartError) else StartError(f"{self._name}: {error}")
            )
            failure.__cause__ = error if failure is not error else error.__cause__
            self._on_loop(done, failure)
            return
        self.state = "ready"
        self._loaded = True
        self._on_loop(done, None)
        while not self._closing:
            self._round()
        for run in (*self._running, *self._waiting):
            self._end_cancelled(run)
        self._deliver()
        self._generator.close()

    def _round(self) -> None:
        try:
            self._drop_cancelled()
            self._start_waiting()
            if self._running:
                self._generator.step()
            elif not self._generator.idle(lambda: bool(self._waiting)):
                self._rest()
        except Exception as error:
            self._rebuild(error)
        self._running = [run for run in self._running if not run.ended]
        self._deliver()

    def _rest(self) -> None:
        """Sleeps until somebody comes."""
        self._deliver()  # those refused at their start must not wait for the next arrival
        with self._changed:
            if not (self._waiting or self._closing):
                self._changed.wait()

    def _drop_cancelled(self) -> None:
        for run in [run for run in self._running if run.cancelled]:
            self._running.remove(run)
            self._generator.drop(run)
            run.finish("cancelled")
        with self._changed:
            gone = [run for run in self._waiting if run.cancelled]
            for run in gone:
                self._waiting.remove(run)
                self._queue_moved = True
                run.finish("cancelled")

    def _start_waiting(self) -> None:
        while len(self._running) < self._generator.parallel:
            with self._changed:
                if not self._waiting:
                    break
                run = self._waiting.popleft()
                self._running.append(run)
                self._queue_moved = True
            run.started()
            try:
                self._generator.start(run)
            except Exception as error:
                self._running.remove(run)
                run.fail(error)
        self._tell_positions()

    def _tell_positions(self) -> None:
        if self._queue_moved:
            with self._changed:
                self._queue_moved = False
                for position, run in enumerate(self._waiting, 1):
                    run.queued(position)

    def _rebuild(self, error: Exception) -> None:
        """Tells everyone who was served, then loads again until it works."""
        log.exception("%s failed and is restarted", self._name)
        self.state = "loading"
        for run in self._running:
            run.fail(EngineUnavailable(f"The engine failed: {error}. It is being restarted."))
        self._running = []
        self._deliver()
        self._restarts += 1
        for pause in itertools.chain(RETRY_SECONDS, itertools.repeat(RETRY_SECONDS[-1])):
            try:
                self._generator.close()
                self._generator.load(lambda _: None)
            except Exception:
                log.exception("%s could not be restarted", self._name)
                self._refuse_waiting()
                with self._changed:
                    if self._changed.wait_for(lambda: self._closing, pause):
                        return
            else:
                self.state = "ready"
                return

    def _refuse_waiting(self) -> None:
        with self._changed:
            self.state = "failed"
            waiting, self._waiting = self._waiting, deque()
        for run in waiting:
            run.fail(EngineUnavailable("The engine failed and could not be restarted yet."))
        self._deliver()

    def _end_cancelled(self, run: Run) -> None:
        if run in self._running:
            self._generator.drop(run)
        run.finish("cancelled")

    def _note(self, run: Run) -> None:
        self._spoke[run] = None

    def _deliver(self) -> None:
        """One wake-up on the loop for all who were spoken to since the last."""
        if self._spoke:
            spoke, self._spoke = tuple(self._spoke), {}
            self._on_loop(_wake_all, spoke)

    def _on_loop(self, call: Callable[..., None], *args: object) -> None:
        with contextlib.suppress(RuntimeError):  # the loop was closed before the worker
            self._loop.call_soon_threadsafe(call, *args)


class WorkerEngine:
    """The part of an engine that every generator in a worker shares."""

    def __init__(self, generator: Generator, *, max_queue: int, name: str) -> None:
        self._worker = Worker(generator, max_queue=max_queue, name=name)

    @property
    def state(self) -> EngineState:
        """``loading`` also covers a restart after a fault."""
        return self._worker.state

    async def load(self, progress: Callable[[float], None]) -> None:
        """Loads the model in the worker's thread."""
        await self._worker.load(progress)

    def submit(self, job: Job) -> Generation:
        """Queues a job."""
        return self._worker.submit(job)

    def stats(self) -> EngineStats:
        """A snapshot."""
        return self._worker.stats()

    async def close(self) -> None:
        """Cancels everything and frees the memory."""
        await self._worker.close()


def _wake_all(runs: Iterable[Run]) -> None:
    for run in runs:
        run.wake()
