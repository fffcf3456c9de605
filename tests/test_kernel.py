"""One process from start to end, without HTTP."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from hookline import (
    ApiError,
    ConstraintSpec,
    Embedder,
    Engine,
    Grammar,
    InvalidRequest,
    Message,
    PluginError,
    StartError,
    hookimpl,
)
from hookline.config import Settings
from hookline.engine import Job
from hookline.engines.scripted import Line, ScriptedEngine, say
from hookline.errors import NoModel, OtherModelConfigured, ShuttingDown
from hookline.kernel import Kernel

HELLO = [Message(role="user", content="Hello")]


class Brings:
    """A plugin with an engine."""

    def __init__(self, engine: Engine | None) -> None:
        self.engine = engine

    @hookimpl
    def create_engine(self) -> Engine | None:
        return self.engine


def kernel(tmp_path: Path, engine: Engine | None, settings: Any = None, **more: object) -> Kernel:
    options = {"data_dir": tmp_path, "plugins": [], "model": {"engine": "test"}}
    chosen = Settings(**{**options, **(settings or {})})
    return Kernel(chosen, plugins={**more, "engine": Brings(engine)})


async def test_ready_when_the_model_is_loaded(tmp_path: Path) -> None:
    one = kernel(tmp_path, ScriptedEngine(model="m"))
    async with one.running():
        assert one.health()["status"] == "loading"
        with pytest.raises(NoModel):
            _ = one.engine
        await one.loaded
        assert one.ready
        assert one.health()["status"] == "ready"
        assert one.health()["model"] == "m"
    assert one.stats().running == 0


async def test_without_an_engine_it_says_which_was_wanted(tmp_path: Path) -> None:
    one = kernel(tmp_path, None)
    async with one.running():
        with pytest.raises(StartError, match="'test'"):
            await one.loaded
        assert one.health()["status"] == "failed"
        assert "'test'" in one.health()["error"]


async def test_two_servers_in_one_process_share_nothing(tmp_path: Path) -> None:
    first = kernel(tmp_path / "1", ScriptedEngine(say("one")))
    second = kernel(tmp_path / "2", ScriptedEngine(say("two")))
    async with first.running(), second.running():
        await asyncio.gather(first.loaded, second.loaded)
        assert [await k.ask(HELLO) for k in (first, second)] == ["one", "two"]
        assert first.metrics.registry is not second.metrics.registry


async def test_asking_the_model_takes_the_same_queue(tmp_path: Path) -> None:
    def script(prompt: str, job: Job) -> Iterator[Line]:
        assert prompt.endswith("<|im_start|>user\nHello<|im_end|>\n<|im_start|>assistant\n")
        yield from ("a", "b", "<|im_start|>", "c")

    one = kernel(tmp_path, ScriptedEngine(script, parallel=1, max_queue=0))
    async with one.running():
        await one.loaded
        assert await one.ask(HELLO, max_tokens=4) == "abc"
        busy = [asyncio.create_task(one.ask(HELLO)) for _ in range(2)]
        answers = await asyncio.gather(*busy, return_exceptions=True)
        assert any(isinstance(answer, ApiError) and answer.status == 503 for answer in answers)


async def test_leaving_while_asking_frees_the_engine(tmp_path: Path) -> None:
    def forever(prompt: str, job: Job) -> Iterator[Line]:
        while True:
            yield "x"

    one = kernel(tmp_path, ScriptedEngine(forever, context=10**9))
    async with one.running():
        await one.loaded
        asking = asyncio.create_task(one.ask(HELLO, max_tokens=10**9))
        async with asyncio.timeout(10):
            while not one.stats().running:
                await asyncio.sleep(0.001)
            asking.cancel()
            await asyncio.wait([asking])
            while one.stats().running:
                await asyncio.sleep(0.001)


class Services:
    """Provides a constraint for regular expressions, and one embedder."""

    def __init__(self) -> None:
        self.made: list[str] = []

    @hookimpl
    async def create_constraint(self, spec: ConstraintSpec) -> Grammar | None:
        return Never() if spec.kind == "regex" else None

    @hookimpl
    async def create_embedder(self, name: str) -> Embedder | None:
        self.made.append(name)
        await asyncio.sleep(0)
        return None if name == "unknown" else Zeros(name)


class Never:
    def start(self) -> Any:
        raise NotImplementedError


class Zeros:
    dimensions = 1
    max_tokens = 100

    def __init__(self, name: str) -> None:
        self.name = name

    def count(self, text: str) -> int:
        return len(text)

    async def embed(
        self, texts: Any, *, kind: Any = "document", usage: Any = None
    ) -> list[list[float]]:
        return [[0.0] for _ in texts]


async def test_plugins_serve_each_other(tmp_path: Path) -> None:
    services = Services()
    one = kernel(tmp_path, ScriptedEngine(), services=services)
    assert await one.constraint(ConstraintSpec("regex", "a*")) is not None
    with pytest.raises(InvalidRequest) as refused:
        await one.constraint(ConstraintSpec("grammar", "start: 'a'", param="response_format"))
    assert refused.value.param == "response_format"
    first, second = await asyncio.gather(one.embedder(), one.embedder())
    assert first is second is not None
    assert await one.embedder("unknown") is None
    assert services.made == ["", "unknown"]


class Life:
    """Writes down when it opens and closes; may fail to open."""

    def __init__(self, name: str, log: list[str], error: Exception | None = None) -> None:
        self.name, self.log, self.error = name, log, error

    @hookimpl
    def lifespan(self) -> AbstractAsyncContextManager[None]:
        return self.live()

    @asynccontextmanager
    async def live(self) -> AsyncIterator[None]:
        if self.error is not None:
            raise self.error
        self.log.append(f"open {self.name}")
        try:
            yield
        finally:
            self.log.append(f"close {self.name}")


async def test_plugins_open_in_order_and_close_in_reverse(tmp_path: Path) -> None:
    log: list[str] = []
    lives = {name: Life(name, log) for name in ("a", "b")}
    async with kernel(tmp_path, ScriptedEngine(), **lives).running():
        pass
    assert log == ["open a", "open b", "close b", "close a"]


async def test_a_plugin_that_cannot_start_is_off(tmp_path: Path) -> None:
    log: list[str] = []
    broken = Life("broken", log, OSError("no disk"))
    one = kernel(tmp_path, ScriptedEngine(), broken=broken, fine=Life("fine", log))
    async with one.running():
        await one.loaded
        states = {plugin["name"]: plugin for plugin in one.health()["plugins"]}
        assert states["broken"]["state"] == "failed"
        assert "no disk" in states["broken"]["reason"]
        assert states["fine"]["state"] == "active"


async def test_an_essential_plugin_that_cannot_start_stops_the_start(tmp_path: Path) -> None:
    log: list[str] = []
    lives = {"fine": Life("fine", log), "guard": Life("guard", log, OSError("no disk"))}
    one = kernel(tmp_path, ScriptedEngine(), **lives)
    one.plugins.found["guard"].essential = True
    with pytest.raises(PluginError, match=r"guard.*no disk"):
        async with one.running():
            pass
    assert log == ["open fine", "close fine"]


async def test_draining_waits_for_what_runs_and_takes_nothing_new(tmp_path: Path) -> None:
    one = kernel(tmp_path, ScriptedEngine())
    async with one.running():
        await one.loaded
        with one.at_work():
            draining = asyncio.create_task(one.drain())
            await asyncio.sleep(0)
            assert one.health()["status"] == "stopping"
            with pytest.raises(ShuttingDown), one.at_work():
                pass
            assert not draining.done()
        await draining


async def test_another_configured_model_is_refused(tmp_path: Path) -> None:
    one = kernel(tmp_path, ScriptedEngine(), {"models": {"big": {}, "small": {}}})
    with pytest.raises(OtherModelConfigured, match="--model big"):
        one.refuse_other_model("big")
    for name in (None, "gpt-4o", one.model_id):
        one.refuse_other_model(name)


async def test_ignored_fields_are_reported_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    one = kernel(tmp_path, ScriptedEngine())
    one.report_ignored(["user", "user"])
    one.report_ignored(["user", "x" * 1000])
    one.report_ignored(["max_tokenz"])
    assert len(caplog.records) == 3
    assert caplog.messages[-1].endswith("is ignored; did you mean max_tokens?")
    assert max(len(record.getMessage()) for record in caplog.records) < 200


def test_a_chat_template_that_cannot_be_read_stops_the_start(tmp_path: Path) -> None:
    missing = {"model": {"engine": "test", "chat_template": tmp_path / "none.jinja"}}
    with pytest.raises(StartError, match="chat_template"):
        kernel(tmp_path, None, missing)


async def test_a_chat_template_of_one_s_own(tmp_path: Path) -> None:
    file = tmp_path / "plain.jinja"
    file.write_text("{% for m in messages %}{{ m.content }}{% endfor %}>")
    prompts: list[str] = []

    def script(prompt: str, job: Job) -> Iterator[Line]:
        prompts.append(prompt)
        yield "hi"

    settings = {"model": {"engine": "test", "chat_template": file}}
    one = kernel(tmp_path, ScriptedEngine(script), settings)
    async with one.running():
        await one.loaded
        await one.ask(HELLO)
    assert prompts == ["<s>Hello>"]
