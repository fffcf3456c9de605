"""Calls of hooks: budgets, failures, and plugins that are left alone for a while."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from pydantic import BaseModel

from hookline import Caller, Exchange, InvalidRequest, Job, hookimpl
from hookline.budget import OverBudget, within
from hookline.config import IsolationSettings, Settings
from hookline.discovery import load_plugins, request_model
from hookline.errors import PluginFailed, PluginPaused
from hookline.plugins import Plugins
from hookline.stream import Delta, Pipeline


class Request(BaseModel):
    pass


class Fields(BaseModel):
    weather: bool = False


class Moody:
    """Fails while it is told to."""

    def __init__(self) -> None:
        self.broken = True
        self.calls = 0

    @hookimpl
    async def transform(self) -> None:
        self.calls += 1
        if self.broken:
            raise RuntimeError("moody")

    @hookimpl
    def opening_fields(self) -> dict[str, Any]:
        return {"moody": True}

    @hookimpl
    async def settle(self) -> None:
        self.calls += 100


class Asked(Moody):
    request_fields = Fields


class Time:
    """Seconds that a test moves."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


def plugins(time: Time | None = None, limits: Any = None, **extra: object) -> Plugins:
    isolation = IsolationSettings(**{"max_failures": 3, "pause_seconds": 10, **(limits or {})})
    loaded = load_plugins(Settings(plugins=[], isolation=isolation), extra=extra)
    if time is not None:
        loaded.isolation.now = time
    return loaded


def exchange(loaded: Plugins, **fields: Any) -> Exchange:
    model = request_model(Request, loaded.request_fields())
    return Exchange("id", 0, "model", model(**fields), Caller())


async def request(loaded: Plugins, **fields: Any) -> Exchange:
    """A request's hooks, from the first to the last."""
    one = exchange(loaded, **fields)
    try:
        await loaded.admit(one)
        await loaded.transform(one)
    finally:
        await loaded.settle(one, None)
    return one


# Budgets


async def test_a_hook_that_never_waits_needs_no_timer() -> None:
    async def quick() -> str:
        return "done"

    assert await within(1e-9, quick()) == "done"


async def test_a_hook_that_waits_is_awaited() -> None:
    async def slow() -> str:
        for _ in range(3):
            await asyncio.sleep(0)
        await asyncio.sleep(0.001)
        return "done"

    assert await within(30, slow()) == "done"


async def test_a_hook_that_hangs_is_cancelled() -> None:
    cleaned_up = []

    async def hangs() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            cleaned_up.append(True)

    with pytest.raises(OverBudget, match=r"within 0\.01 s"):
        await within(0.01, hangs())
    assert cleaned_up


async def test_a_hook_s_own_timeout_is_no_overrun() -> None:
    async def impatient() -> None:
        async with asyncio.timeout(0.001):
            await asyncio.sleep(10)

    with pytest.raises(TimeoutError):
        await within(30, impatient())


async def test_a_client_that_leaves_cancels_the_hook() -> None:
    begun, ended = asyncio.Event(), asyncio.Event()

    class Slow:
        @hookimpl
        async def transform(self) -> None:
            begun.set()
            try:
                await asyncio.sleep(600)
            finally:
                ended.set()

    loaded = plugins(slow=Slow())
    task = asyncio.create_task(loaded.transform(exchange(loaded)))
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert ended.is_set()
    assert loaded.found["slow"].failures == 0


async def test_a_plugin_that_cancels_itself_has_failed() -> None:
    class Cancelled:
        @hookimpl
        async def transform(self) -> None:
            task = asyncio.create_task(asyncio.sleep(600))
            task.cancel()
            await task

    loaded = plugins(it=Cancelled())
    await loaded.transform(exchange(loaded))
    assert loaded.found["it"].failures == 1


async def test_transform_has_a_budget_of_its_own() -> None:
    class Slow:
        @hookimpl
        async def admit(self) -> None:
            await asyncio.sleep(0.05)

        @hookimpl
        async def transform(self) -> None:
            await asyncio.sleep(0.05)

    limits = {"hook_seconds": 0.01, "transform_seconds": 30}
    loaded = plugins(limits=limits, slow=Slow())
    one = await request(loaded)
    assert [warning["hook"] for warning in one.warnings] == ["admit"]
    assert "did not answer within 0.01 s" in one.warnings[0]["message"]


# Overruns


async def test_a_plain_hook_that_blocks_is_measured_and_in_the_end_left_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = iter(range(0, 10_000, 5))
    monkeypatch.setattr("hookline.isolation.time.perf_counter", lambda: float(next(clock)))
    loaded = plugins(Time(), moody=Moody())
    for _ in range(3):
        assert loaded.opening_fields(exchange(loaded)) == {"moody": True}
    plugin = loaded.found["moody"]
    assert (plugin.overruns, plugin.failures, plugin.breaker.state) == (3, 0, "open")
    assert plugin.last_failure == "blocked the server for 5.0 s in opening_fields"
    assert "moody" not in loaded.opening_fields(exchange(loaded))


async def test_in_a_thread_a_plain_hook_keeps_nobody_waiting(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = iter(range(0, 10_000, 5))
    monkeypatch.setattr("hookline.isolation.time.perf_counter", lambda: float(next(clock)))
    loaded = plugins(Time(), moody=Moody())
    await asyncio.to_thread(loaded.opening_fields, exchange(loaded))
    assert loaded.found["moody"].overruns == 0


# Plugins that are paused


async def test_what_fails_again_and_again_is_left_alone_in_all_its_hooks() -> None:
    time, moody = Time(), Moody()
    loaded = plugins(time, moody=moody)
    for _ in range(3):
        await request(loaded)
    moody.calls = 0
    one = exchange(loaded)
    await loaded.transform(one)
    fields = loaded.opening_fields(one)
    await loaded.settle(one, None)
    assert moody.calls == 0
    assert "moody" not in fields
    (warning,) = fields["warnings"]
    assert (warning["plugin"], warning["hook"]) == ("moody", "transform")
    assert "paused after failures in a row" in warning["message"]
    assert "RuntimeError in transform" in warning["message"]
    assert "tried again in 10 s" in warning["message"]
    assert loaded.found["moody"].summary()["breaker"] == "open"


async def test_it_is_tried_again_after_a_pause() -> None:
    time, moody = Time(), Moody()
    loaded = plugins(time, moody=moody)
    for _ in range(3):
        await request(loaded)
    time.seconds = 10
    assert (await request(loaded)).paused == frozenset()
    assert (await request(loaded)).paused == frozenset({"moody"}), "the trial failed"
    time.seconds, moody.broken = 20, False
    assert not (await request(loaded)).warnings
    assert not (await request(loaded)).paused
    assert loaded.found["moody"].summary()["reason"] is None


async def test_a_request_keeps_the_plugins_that_it_began_with() -> None:
    moody = Moody()
    loaded = plugins(Time(), moody=moody)
    one = exchange(loaded)
    await loaded.admit(one)
    for _ in range(3):
        await request(loaded)
    assert "moody" in loaded.opening_fields(one)


async def test_a_request_that_asks_for_it_is_refused_meanwhile() -> None:
    time, asked = Time(), Asked()
    loaded = plugins(time, asked=asked)
    for _ in range(3):
        with pytest.raises(PluginFailed):
            await request(loaded, weather=True)
    time.seconds = 4.5
    with pytest.raises(PluginPaused, match="'asked' is paused") as refused:
        await request(loaded, weather=True)
    assert refused.value.headers["Retry-After"] == "6"
    assert (await request(loaded)).warnings


async def test_doing_nothing_for_those_who_do_not_ask_ends_no_row() -> None:
    class OnlyAsked(Asked):
        @hookimpl
        async def transform(self, exchange: Exchange) -> None:  # type: ignore[override]
            if exchange.fields(Fields).weather:
                raise RuntimeError("broken")

    loaded = plugins(Time(), asked=OnlyAsked())
    for _ in range(3):
        with pytest.raises(PluginFailed):
            await request(loaded, weather=True)
        await request(loaded)
    assert loaded.found["asked"].breaker.state == "open"


async def test_a_request_that_does_not_ask_brings_it_back_on_probation() -> None:
    class OnlyAsked(Asked):
        @hookimpl
        async def transform(self, exchange: Exchange) -> None:  # type: ignore[override]
            if self.broken and exchange.fields(Fields).weather:
                raise RuntimeError("broken")

    time, asked = Time(), OnlyAsked()
    loaded = plugins(time, asked=asked)
    for _ in range(3):
        with pytest.raises(PluginFailed):
            await request(loaded, weather=True)
    assert loaded.found["asked"].summary()["state"] == "paused"
    time.seconds = 10
    assert not (await request(loaded)).paused
    assert loaded.found["asked"].summary()["state"] == "active"
    with pytest.raises(PluginFailed):
        await request(loaded, weather=True)
    with pytest.raises(PluginPaused):
        await request(loaded, weather=True)
    time.seconds, asked.broken = 20, False
    await request(loaded, weather=True)
    assert loaded.found["asked"].breaker.in_a_row == {}


async def test_the_warning_names_the_hook_that_paused_it() -> None:
    class Twice(Moody):
        @hookimpl
        async def admit(self) -> None:
            if self.calls < 2:
                raise RuntimeError("at first")

    loaded = plugins(Time(), it=Twice())
    loaded.found["it"].breaker.limit = 3
    for _ in range(3):
        await request(loaded)
    (warning,) = (await request(loaded)).warnings
    assert warning["hook"] == "transform"


async def test_a_refusal_on_purpose_is_no_failure() -> None:
    class Refusing:
        @hookimpl
        async def admit(self) -> None:
            raise InvalidRequest("no")

    loaded = plugins(Time(), it=Refusing())
    for _ in range(5):
        with pytest.raises(InvalidRequest):
            await request(loaded)
    assert (loaded.found["it"].failures, loaded.found["it"].breaker.state) == (0, "closed")


async def test_an_essential_plugin_is_never_left_out() -> None:
    moody = Moody()
    loaded = plugins(Time(), moody=moody)
    loaded.found["moody"].essential = True
    for _ in range(5):
        with pytest.raises(PluginFailed):
            await request(loaded)
    moody.broken = False
    assert not (await request(loaded)).warnings


async def test_who_authenticates_is_never_left_out() -> None:
    class Guard(Moody):
        @hookimpl
        async def authenticate(self) -> Caller | None:
            raise RuntimeError("no idea")

    loaded = plugins(Time(), guard=Guard())
    for _ in range(5):
        with pytest.raises(PluginFailed):
            await loaded.authenticate({}, "")


async def test_outside_of_requests_only_the_hook_that_fails_is_left_alone() -> None:
    class Embeds(Moody):
        @hookimpl
        async def create_embedder(self, name: str) -> Any:
            self.calls += 1
            raise RuntimeError("no")

        @hookimpl
        def list_models(self) -> list[dict[str, Any]]:
            return [{"id": "one"}]

    embeds, time = Embeds(), Time()
    loaded = plugins(time, it=embeds)
    for _ in range(5):
        assert await loaded.create_embedder("", None) is None  # type: ignore[arg-type]
    assert embeds.calls == 3
    assert loaded.list_models(None) == [{"id": "one"}]  # type: ignore[arg-type]
    time.seconds = 10
    await loaded.create_embedder("", None)  # type: ignore[arg-type]
    assert embeds.calls == 4


def test_a_stage_that_works_to_its_end_ends_the_row() -> None:
    class Stages:
        def __init__(self) -> None:
            self.broken = True

        @hookimpl
        def stage(self) -> Stages:
            return self

        def feed(self, delta: Delta) -> list[Delta]:
            return ["no delta"] if self.broken else [delta]  # type: ignore[list-item]

        def finish(self) -> list[Delta]:
            return []

    stages = Stages()
    loaded = plugins(Time(), it=stages)
    for stages.broken in (True, True, False, True, True):
        one = exchange(loaded)
        pipeline = Pipeline(loaded.stages(one, Job([1])))
        assert [delta.text for delta in pipeline.feed(Delta("a"))] == ["a"]
        pipeline.finish()
        assert bool(one.warnings) == stages.broken
    assert loaded.found["it"].breaker.state == "closed"


async def test_the_core_is_never_left_alone() -> None:
    loaded = load_plugins(
        Settings(plugins=[], isolation={"max_failures": 1}), core={"quota": Moody()}
    )
    for _ in range(3):
        with pytest.raises(PluginFailed, match="quota"):
            await request(loaded)
