"""Many requests at once: order, bounds of the queue, and an engine that fails."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from hookline import Job
from hookline.engines import worker
from hookline.engines.scripted import Break, Line, Pause, say


class Gate:
    """A script that says a token, then waits until it may go on; notes the order of starts."""

    def __init__(self) -> None:
        self.open = threading.Event()
        self.started: list[str] = []

    def __call__(self, prompt: str, job: Job) -> Iterator[Line]:
        last = prompt.rpartition("<|im_start|>user\n")[2].partition("<|im_end|>")[0]
        self.started.append(last)
        yield last
        while not self.open.is_set():
            yield Pause(0.002)
        yield "."


@pytest.fixture
def gate() -> Iterator[Gate]:
    gate = Gate()
    yield gate
    gate.open.set()


def busy(server: Any, running: int, queued: int) -> Callable[[], bool]:
    def check() -> bool:
        stats = server.engine.stats()
        return (stats.running, stats.queued) == (running, queued)

    return check


async def ask(server: Any, until: Any, count: int, **fields: Any) -> list[asyncio.Task[Any]]:
    """So many requests, each in the engine before the next is sent."""
    before = sum((server.engine.stats().running, server.engine.stats().queued))
    tasks = []
    for number in range(count):
        tasks.append(asyncio.create_task(server.chat(f"r{number}", **fields)))

        def is_in(expected: int = before + number + 1) -> bool:
            stats = server.engine.stats()
            return bool(stats.running + stats.queued == expected)

        await until(is_in)
    return tasks


async def test_parallel_requests_run_at_once_and_start_in_order(
    on_port: Any, gate: Gate, until: Any
) -> None:
    async with on_port(script=gate, engine={"parallel": 3}) as server:
        tasks = await ask(server, until, 8)
        await until(busy(server, 3, 5))
        assert gate.started == ["r0", "r1", "r2"]
        gate.open.set()
        answers = await asyncio.gather(*tasks)
    assert gate.started == [f"r{number}" for number in range(8)]
    said = [answer.json()["choices"][0]["message"]["content"] for answer in answers]
    assert said == [f"r{number}." for number in range(8)]


@pytest.mark.parametrize("stream", [False, True])
async def test_a_full_queue_is_a_503(on_port: Any, gate: Gate, until: Any, stream: bool) -> None:
    engine = {"parallel": 2, "max_queue": 3}
    async with on_port(script=gate, engine=engine) as server:
        tasks = await ask(server, until, 5)
        await until(busy(server, 2, 3))
        refused = await server.chat("too much", stream=stream)
        completion = await server.client.post(
            "/v1/completions", json={"prompt": "x", "stream": stream}
        )
        for answer in (refused, completion):
            assert answer.status_code == 503
            assert answer.json()["error"]["code"] == "queue_full"
            assert int(answer.headers["retry-after"]) >= 1
            assert answer.headers["content-type"] == "application/json"
        gate.open.set()
        assert [answer.status_code for answer in await asyncio.gather(*tasks)] == [200] * 5
        assert (await server.chat("again")).status_code == 200


async def test_no_queue_at_all(on_port: Any, gate: Gate, until: Any) -> None:
    async with on_port(script=gate, engine={"parallel": 1, "max_queue": 0}) as server:
        tasks = await ask(server, until, 1)
        await until(busy(server, 1, 0))
        assert (await server.chat("x")).status_code == 503
        gate.open.set()
        assert (await tasks[0]).status_code == 200
        await until(busy(server, 0, 0))
        assert (await server.chat("x")).status_code == 200


async def test_many_choices_are_all_or_nothing(on_port: Any, gate: Gate, until: Any) -> None:
    async with on_port(script=gate, engine={"parallel": 2, "max_queue": 4}) as server:
        tasks = await ask(server, until, 1)
        await until(busy(server, 1, 0))
        assert (await server.chat("eight", n=8)).status_code == 503
        await until(busy(server, 1, 0))
        five = asyncio.create_task(server.chat("five", n=5))
        await until(busy(server, 2, 4))
        gate.open.set()
        assert len((await five).json()["choices"]) == 5
        assert (await tasks[0]).status_code == 200
    assert server.kernel.in_flight == 0


async def test_a_failing_engine_answers_502_and_then_the_queue(
    on_port: Any, gate: Gate, until: Any, streamed: Any
) -> None:
    def script(prompt: str, job: Job) -> Iterator[Line]:
        yield from gate(prompt, job)
        if "breaks" in prompt:
            yield Break(RuntimeError("out of memory"))
        while "goes on" in prompt:
            yield Pause(0.002)

    goes_on = [{"role": "user", "content": "goes on"}]
    async with on_port(script=script, engine={"parallel": 2}) as server:
        breaking = asyncio.create_task(server.chat("breaks"))
        await until(busy(server, 1, 0))
        beside = asyncio.create_task(streamed(server, messages=goes_on))
        await until(busy(server, 2, 0))
        waiting = [asyncio.create_task(server.chat(f"w{number}")) for number in range(3)]
        await until(busy(server, 2, 3))
        gate.open.set()
        failed = await breaking
        assert failed.status_code == 502
        assert failed.json()["error"]["code"] == "engine_unavailable"
        assert [(await task).status_code for task in waiting] == [200] * 3
        events = await beside
        assert events.text == "goes on."
        assert events.chunks[-1]["error"]["code"] == "engine_unavailable"
        health = await server.client.get("/health")
        assert (health.status_code, health.json()["restarts"]) == (200, 1)
        assert (await server.chat("well again")).status_code == 200
        await until(lambda: server.kernel.in_flight == 0)


async def test_an_engine_that_cannot_be_restarted(
    on_port: Any, gate: Gate, until: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker, "RETRY_SECONDS", (0.05,))
    failing = threading.Event()
    failing.set()

    def script(prompt: str, job: Job) -> Iterator[Line]:
        yield from gate(prompt, job)
        if failing.is_set():
            yield Break(RuntimeError("out of memory"))

    async with on_port(script=script, engine={"parallel": 1}) as server:
        load = server.engine.generator.load

        def broken_load(progress: Callable[[float], None]) -> None:
            if failing.is_set():
                raise RuntimeError("the card has fallen off the bus")
            load(progress)

        monkeypatch.setattr(server.engine.generator, "load", broken_load)
        tasks = await ask(server, until, 3)
        gate.open.set()
        answers = await asyncio.gather(*tasks)
        assert [answer.status_code for answer in answers] == [502] * 3
        health = await server.client.get("/health")
        assert (health.status_code, health.json()["status"]) == (503, "failed")
        for stream in (False, True):
            refused = await server.chat("x", stream=stream)
            assert refused.status_code == 503
            assert refused.json()["error"]["code"] == "model_not_loaded"
            assert "retry-after" in refused.headers
        assert (await server.client.get("/v1/models")).status_code == 200
        assert (await server.client.get("/metrics")).status_code == 200
        failing.clear()
        await until(lambda: server.engine.state == "ready")
        assert (await server.client.get("/health")).status_code == 200
        assert (await server.chat("x")).status_code == 200


async def test_health_while_the_engine_comes_back(
    on_port: Any, until: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with on_port(script=say("a", Break(RuntimeError("boom")))) as server:
        load, slow = server.engine.generator.load, threading.Event()

        def slow_load(progress: Callable[[float], None]) -> None:
            slow.wait(10)
            load(progress)

        monkeypatch.setattr(server.engine.generator, "load", slow_load)
        assert (await server.chat("x")).status_code == 502
        health = await server.client.get("/health")
        assert (health.status_code, health.json()["status"]) == (503, "loading")
        assert "retry-after" in health.headers
        slow.set()
        await until(lambda: server.engine.state == "ready")
        assert (await server.client.get("/health")).status_code == 200


async def test_the_fault_of_one_job_touches_no_other(on_port: Any, gate: Gate, until: Any) -> None:
    def script(prompt: str, job: Job) -> Iterator[Line]:
        yield from gate(prompt, job)
        if "faulty" in prompt:
            yield ValueError("only mine")

    def eager(prompt: str, job: Job) -> Iterator[Line]:
        if "cannot start" in prompt:
            raise ZeroDivisionError("no such luck")
        return script(prompt, job)

    async with on_port(script=eager, engine={"parallel": 4}) as server:
        good = await ask(server, until, 2)
        faulty = asyncio.create_task(server.chat("faulty"))
        await until(busy(server, 3, 0))
        refused = await server.chat("cannot start")
        assert refused.status_code == 502
        gate.open.set()
        assert [(await task).status_code for task in good] == [200, 200]
        answer = await faulty
        assert answer.status_code == 502
        assert answer.json()["error"]["code"] == "engine_unavailable"
        assert server.engine.stats().restarts == 0


async def test_an_engine_that_fails_while_a_job_is_dropped(
    on_port: Any, gate: Gate, until: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with on_port(script=gate, engine={"parallel": 2}) as server:
        (staying,) = await ask(server, until, 1)
        leaving = asyncio.create_task(server.chat("leaves"))
        await until(busy(server, 2, 0))
        drop = server.engine.generator.drop

        def broken_drop(run: Any) -> None:
            monkeypatch.setattr(server.engine.generator, "drop", drop)
            raise RuntimeError("boom")

        monkeypatch.setattr(server.engine.generator, "drop", broken_drop)
        leaving.cancel()
        assert (await staying).status_code == 502
        gate.open.set()
        await until(lambda: server.engine.state == "ready" and server.kernel.in_flight == 0)
        assert (await server.chat("again")).status_code == 200


async def test_each_gets_its_own_answer_alone_and_in_a_crowd(on_port: Any) -> None:
    texts = [f"the words of request {number} " + "x " * number for number in range(24)]
    async with on_port(engine={"parallel": 4}) as server:
        crowd = await asyncio.gather(*(server.chat(text, temperature=1, seed=3) for text in texts))
        said = [answer.json()["choices"][0]["message"]["content"] for answer in crowd]
    assert said == texts


async def test_two_servers_in_one_process(on_port: Any) -> None:
    async with on_port(script=say("one")) as first, on_port(script=say("two")) as second:
        answers = await asyncio.gather(first.chat(), second.chat())
    said = [answer.json()["choices"][0]["message"]["content"] for answer in answers]
    assert said == ["one", "two"]


@pytest.mark.parametrize("stream", [False, True])
async def test_more_answers_than_the_queue_ever_takes_is_no_matter_of_waiting(
    in_process: Any, stream: bool
) -> None:
    settings = {"server": {"max_queue": 1}}
    async with in_process(engine={"parallel": 2}, settings=settings) as server:
        answer = await server.chat(n=4, stream=stream)
        assert answer.status_code == 400
        assert answer.json()["error"]["param"] == "n"
        assert (await server.chat(n=3)).status_code == 200
