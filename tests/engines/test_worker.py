"""The worker thread: queue, order, cancel, faults, restart."""

from __future__ import annotations

import asyncio
import gc
import threading
from collections import deque
from collections.abc import Callable, Iterator

import pytest

from hookline.engine import EngineStats, Generation, Job, Piece, Queued
from hookline.engines.run import Run
from hookline.engines.scripted import Break, Line, Pause, ScriptedEngine, say
from hookline.engines.worker import Worker
from hookline.errors import EngineUnavailable, InvalidRequest, NoModel, QueueFull, StartError


async def loaded(engine: ScriptedEngine) -> ScriptedEngine:
    await engine.load(lambda share: None)
    return engine


async def text(generation: Generation) -> str:
    return "".join([token.text async for piece in generation for token in piece.tokens])


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not condition():
            await asyncio.sleep(0.001)


def forever(prompt: str, job: Job) -> Iterator[Line]:
    while True:
        yield "x"


def busy(engine: ScriptedEngine) -> tuple[int, int]:
    return engine.stats().running, engine.stats().queued


async def test_jobs_start_in_the_order_they_came() -> None:
    started: list[int] = []

    def script(prompt: str, job: Job) -> Iterator[Line]:
        started.append(job.prompt[0])
        yield "a"

    engine = await loaded(ScriptedEngine(script, parallel=2))
    jobs = [engine.submit(Job([number])) for number in range(20)]
    assert await asyncio.gather(*map(text, jobs)) == ["a"] * 20
    assert started == list(range(20))
    await engine.close()


async def test_past_the_bound_the_queue_is_full() -> None:
    engine = await loaded(ScriptedEngine(forever, parallel=1, max_queue=2))
    jobs = [engine.submit(Job([1])) for _ in range(3)]
    with pytest.raises(QueueFull) as full:
        engine.submit(Job([1]))
    assert full.value.headers["Retry-After"]
    assert full.value.status == 503
    await jobs[1].aclose()
    await until(lambda: busy(engine) == (1, 1))
    engine.submit(Job([1]))
    await engine.close()


async def test_who_left_the_queue_does_not_fill_it() -> None:
    """Also while a long step keeps the worker from looking."""
    stuck, go_on = threading.Event(), threading.Event()

    def script(prompt: str, job: Job) -> Iterator[Line]:
        stuck.set()
        go_on.wait(10)
        yield "a"

    engine = await loaded(ScriptedEngine(script, parallel=1, max_queue=1))
    first = engine.submit(Job([1]))
    await asyncio.to_thread(stuck.wait, 10)
    second = engine.submit(Job([2]))
    with pytest.raises(QueueFull):
        engine.submit(Job([3]))
    await second.aclose()
    third = engine.submit(Job([3]))
    go_on.set()
    assert [await text(first), await text(third)] == ["a", "a"]
    await engine.close()


async def test_waiting_jobs_hear_their_position() -> None:
    engine = await loaded(ScriptedEngine(forever, parallel=1))
    jobs = [engine.submit(Job([1])) for _ in range(3)]
    assert (await anext(jobs[2])).progress == Queued(2)
    await jobs[0].aclose()
    assert (await anext(jobs[2])).progress == Queued(1)
    await engine.close()


@pytest.mark.parametrize("place", [0, 1], ids=["running", "waiting"])
async def test_closing_frees_the_place(place: int) -> None:
    engine = await loaded(ScriptedEngine(forever, parallel=1))
    jobs = [engine.submit(Job([1])) for _ in range(2)]
    await until(lambda: busy(engine) == (1, 1))
    await jobs[place].aclose()
    await jobs[place].aclose()
    await until(lambda: busy(engine) == (1, 0))
    await engine.close()


async def test_dropping_a_job_unread_cancels_it() -> None:
    engine = await loaded(ScriptedEngine(forever, parallel=1))
    job = engine.submit(Job([1]))
    await until(lambda: busy(engine) == (1, 0))
    del job
    gc.collect()
    await until(lambda: busy(engine) == (0, 0))
    await engine.close()


async def test_pieces_that_wait_are_merged() -> None:
    engine = await loaded(ScriptedEngine(say(*"abcdefgh")))
    job = engine.submit(Job([1]))
    await until(lambda: busy(engine) == (0, 0))
    piece = await anext(job)
    assert "".join(token.text for token in piece.tokens) == "abcdefgh"
    assert piece.finish == "stop"
    with pytest.raises(StopAsyncIteration):
        await anext(job)
    await engine.close()


async def test_the_last_piece_is_read_although_the_end_comes_while_looking() -> None:
    class EndsWhileLooking(deque[Piece]):
        """Empty at the first look; the worker's thread ends the job right after it."""

        def __len__(self) -> int:
            length = super().__len__()
            if not run.ended:
                run.finish("stop")
            return length

    run = Run(Job([1]), lambda run: run.wake())
    run._pieces = EndsWhileLooking()
    piece = await asyncio.wait_for(run.read(), 5)
    assert piece is not None and piece.finish == "stop"
    assert await run.read() is None


async def test_a_fault_reaches_those_it_served_and_the_queue_goes_on() -> None:
    def script(prompt: str, job: Job) -> Iterator[Line]:
        yield "a"
        if job.prompt[0] == 66:
            yield Break(RuntimeError("out of memory"))
        yield "b"

    engine = await loaded(ScriptedEngine(script, parallel=1))
    first, second = engine.submit(Job([66])), engine.submit(Job([1]))
    with pytest.raises(EngineUnavailable, match="out of memory"):
        await text(first)
    assert await text(second) == "ab"
    assert engine.stats().restarts == 1
    assert engine.state == "ready"
    await engine.close()


async def test_an_error_of_one_job_is_its_own() -> None:
    def script(prompt: str, job: Job) -> Iterator[Line]:
        yield "a"
        if job.prompt[0] == 66:
            yield InvalidRequest("no")
        yield "b"

    engine = await loaded(ScriptedEngine(script))
    bad, good = engine.submit(Job([66])), engine.submit(Job([1]))
    assert await text(good) == "ab"
    with pytest.raises(InvalidRequest):
        await text(bad)
    assert engine.stats().restarts == 0
    await engine.close()


async def test_a_job_that_cannot_start_is_refused_alone() -> None:
    engine = await loaded(ScriptedEngine())
    with pytest.raises(EngineUnavailable):
        await text(engine.submit(Job([99_999])))
    assert await text(engine.submit(Job([65]))) == "A"
    await engine.close()


async def test_closing_the_engine_ends_everything_as_cancelled() -> None:
    engine = await loaded(ScriptedEngine(forever, parallel=1))
    jobs = [engine.submit(Job([1])) for _ in range(2)]
    await until(lambda: busy(engine) == (1, 1))
    await engine.close()
    for job in jobs:
        pieces: list[Piece] = [piece async for piece in job]
        assert pieces[-1].finish == "cancelled"
    with pytest.raises(NoModel):
        engine.submit(Job([1]))
    assert engine.state == "closed"


async def test_nothing_is_taken_before_it_is_loaded() -> None:
    with pytest.raises(NoModel):
        ScriptedEngine().submit(Job([1]))


async def test_a_slow_job_does_not_hold_up_its_neighbours() -> None:
    def script(prompt: str, job: Job) -> Iterator[Line]:
        if job.prompt[0] == 66:
            yield Pause(60)
        yield "a"

    engine = await loaded(ScriptedEngine(script))
    slow = engine.submit(Job([66]))
    assert await text(engine.submit(Job([1]))) == "a"
    await slow.aclose()
    await engine.close()


async def test_timings_are_measured() -> None:
    engine = await loaded(ScriptedEngine(say("a", "b"), step_seconds=0.002, prefill_chunk=2))
    pieces = [piece async for piece in engine.submit(Job([1, 2, 3, 4]))]
    timings = pieces[-1].timings
    assert timings.prompt_ms >= 4
    assert timings.predicted_ms >= 4
    assert (timings.prompt_tokens, timings.predicted_n) == (4, 3)
    await engine.close()


class Fragile:
    """Loads, breaks in its first step, and refuses to load again for a while."""

    parallel = 1

    def __init__(self, failures: int) -> None:
        self.loads = 0
        self.failures = failures
        self.waited = threading.Event()

    def load(self, progress: Callable[[float], None]) -> None:
        self.loads += 1
        if 1 < self.loads <= 1 + self.failures:
            raise OSError("no memory")

    def start(self, run: Run) -> None:
        pass

    def step(self) -> None:
        raise RuntimeError("broken")

    def drop(self, run: Run) -> None:
        pass

    def idle(self, wanted: Callable[[], bool]) -> bool:
        return False

    def stats(self, stats: EngineStats) -> EngineStats:
        return stats

    def close(self) -> None:
        pass


async def test_a_generator_that_will_not_come_back_is_tried_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("hookline.engines.worker.RETRY_SECONDS", (0.01,))
    worker = Worker(Fragile(failures=2), max_queue=4, name="fragile")
    await worker.load(lambda share: None)
    jobs = [worker.submit(Job([1])) for _ in range(2)]
    for job in jobs:
        with pytest.raises(EngineUnavailable):
            await text(job)
    await until(lambda: worker.state == "ready")
    await worker.close()


async def test_an_engine_that_cannot_load_says_so() -> None:
    class Broken(Fragile):
        def load(self, progress: Callable[[float], None]) -> None:
            raise StartError("no such file")

    worker = Worker(Broken(0), max_queue=4, name="broken")
    with pytest.raises(StartError, match="no such file"):
        await worker.load(lambda share: None)
    with pytest.raises(NoModel):
        worker.submit(Job([1]))
    await worker.close()
