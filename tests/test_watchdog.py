"""A plugin that blocks the loop is told from outside of it, with where it is."""

from __future__ import annotations

import asyncio
import sys
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from hookline import Delta, Exchange, Job, hookimpl
from hookline.config import Settings
from hookline.discovery import load_plugins
from hookline.plugins import Plugins
from hookline.watchdog import at_work, telling_if_slow, watching


class Waits:
    """Blocks in whichever of its hooks until it is let go."""

    def __init__(self) -> None:
        self.let_go = threading.Event()

    def block(self) -> None:
        assert self.let_go.wait(30)

    @hookimpl
    def opening_fields(self) -> None:
        self.block()

    @hookimpl
    async def transform(self) -> None:
        await asyncio.sleep(0)
        self.block()

    @hookimpl
    def stage(self) -> Waits:
        return self

    def feed(self, delta: Delta) -> Iterable[Delta]:
        self.block()
        return [delta]

    def finish(self) -> Iterable[Delta]:
        return []


def loaded(plugin: object) -> Plugins:
    return load_plugins(Settings(plugins=[]), extra={"waits": plugin})


def exchange() -> Exchange:
    from hookline import Caller
    from hookline.api.schema import ChatRequest

    return Exchange("id", 0, "model", ChatRequest.model_construct(messages=[]), Caller())


def in_opening_fields(plugins: Plugins) -> None:
    plugins.opening_fields(exchange())


def in_transform(plugins: Plugins) -> None:
    asyncio.run(plugins.transform(exchange()))


def in_a_stage(plugins: Plugins) -> None:
    (stage,) = plugins.stages(exchange(), Job([1]))
    [*stage.feed(Delta("a"))]


@pytest.mark.parametrize(
    ("block", "hook"),
    [(in_opening_fields, "opening_fields"), (in_transform, "transform"), (in_a_stage, "stage")],
)
def test_a_stack_tells_who_is_at_work(block: Callable[[Plugins], Any], hook: str) -> None:
    waits = Waits()
    plugins = loaded(waits)
    thread = threading.Thread(target=block, args=(plugins,))
    thread.start()
    try:
        deadline = time.monotonic() + 20
        found = None
        while found is None and time.monotonic() < deadline:
            found = at_work(sys._current_frames()[thread.ident or 0])
    finally:
        waits.let_go.set()
        thread.join()
    assert found is not None
    assert found[:2] == ("waits", hook)


def test_a_stack_without_a_plugin_tells_nobody() -> None:
    assert at_work(sys._getframe()) is None


async def test_who_blocks_the_loop_is_logged_with_the_stack(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("hookline.watchdog.PERIOD", 0.01)

    class UntilTold(Waits):
        def block(self) -> None:
            deadline = time.monotonic() + 30
            while "blocked" not in caplog.text and time.monotonic() < deadline:
                time.sleep(0.01)

    before = threading.active_count()
    with watching(0.02):
        loaded(UntilTold()).opening_fields(exchange())
    assert threading.active_count() == before
    assert "plugin waits has blocked the server for 0 s in opening_fields" in caplog.text
    assert "in block\n" in caplog.text
    assert "in test_who_blocks" not in caplog.text, "only what is inside of the plugin"


async def test_a_loop_that_runs_is_left_alone(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("hookline.watchdog.PERIOD", 0.001)
    with watching(30):
        await asyncio.sleep(0.05)
    assert not caplog.records


async def test_a_start_that_blocks_is_told_as_lifespan(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    from contextlib import AsyncExitStack

    from hookline.budget import enter
    from hookline.plugin import Plugin

    monkeypatch.setattr("hookline.watchdog.PERIOD", 0.01)

    @asynccontextmanager
    async def lifespan() -> Any:
        deadline = time.monotonic() + 30
        while "blocked" not in caplog.text and time.monotonic() < deadline:
            time.sleep(0.01)  # noqa: ASYNC251
        yield

    with watching(0.02):
        async with AsyncExitStack() as stack:
            await enter(stack, Plugin("slow"), lifespan(), 60)
    assert "plugin slow has blocked the server for 0 s in lifespan" in caplog.text


def test_an_import_that_takes_long_is_told(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("hookline.watchdog.PATIENCE", 0.01)
    deadline = time.monotonic() + 30
    with telling_if_slow("importing the plugin slow"):
        while not caplog.records and time.monotonic() < deadline:
            time.sleep(0.005)
    assert caplog.messages == ["importing the plugin slow takes long …"]
