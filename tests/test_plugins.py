"""Hooks at work: order, answers, and failures that stay with their plugin."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import nullcontext
from typing import Any

import pytest
from pydantic import BaseModel

from hookline import Caller, Exchange, InvalidRequest, Job, Message, hookimpl
from hookline.config import Settings
from hookline.discovery import load_plugins, request_model
from hookline.errors import PluginFailed
from hookline.plugins import Plugins
from hookline.stream import Delta, Pipeline


class Fields(BaseModel):
    weather: bool = False


class Request(BaseModel):
    pass


class Recorder:
    """Writes down which of its hooks were called."""

    def __init__(self, name: str, calls: list[str]) -> None:
        self.name, self.calls = name, calls

    @hookimpl
    async def transform(self) -> None:
        self.calls.append(self.name)

    @hookimpl
    def opening_fields(self) -> dict[str, Any]:
        return {"who": self.name, self.name: True}

    @hookimpl
    async def authenticate(self, address: str) -> Caller | None:
        self.calls.append(self.name)
        return Caller(self.name) if address == self.name else None


class Broken:
    """Fails in every hook it has."""

    request_fields = Fields

    @hookimpl
    async def transform(self) -> None:
        raise RuntimeError("boom")

    @hookimpl
    def opening_fields(self) -> dict[str, Any]:
        raise RuntimeError("boom")

    @hookimpl
    async def authenticate(self, headers: Mapping[str, str]) -> Caller | None:
        raise RuntimeError("boom")

    @hookimpl
    def render_prompt(self) -> str:
        raise RuntimeError("boom")

    @hookimpl
    async def settle(self) -> None:
        raise RuntimeError("boom")

    @hookimpl
    def stage(self) -> BrokenStage:
        return BrokenStage()


class BrokenStage:
    def feed(self, delta: Delta) -> Iterable[Delta]:
        if delta.text == "bad":
            raise RuntimeError("boom")
        return [delta]

    def finish(self) -> Iterable[Delta]:
        raise RuntimeError("boom")


class Refusing:
    @hookimpl
    async def transform(self) -> None:
        raise InvalidRequest("not like that")


def plugins(core: Mapping[str, object] | None = None, **extra: object) -> Plugins:
    return load_plugins(Settings(plugins=[]), extra=extra, core=core)


def exchange(loaded: Plugins, **fields: Any) -> Exchange:
    model = request_model(Request, loaded.request_fields())
    return Exchange("id", 0, "model", model(**fields), Caller())


async def test_hooks_are_called_in_order_and_the_core_last() -> None:
    calls: list[str] = []
    names = ["b", "a", "c"]
    made = {name: Recorder(name, calls) for name in names}
    loaded = plugins({"core": Recorder("core", calls)}, **made)
    await loaded.transform(exchange(loaded))
    assert calls == ["b", "a", "c", "core"]
    assert loaded.opening_fields(exchange(loaded))["who"] == "core"


async def test_the_first_answer_ends_the_calls() -> None:
    calls: list[str] = []
    loaded = plugins(a=Recorder("a", calls), b=Recorder("b", calls), c=Recorder("c", calls))
    caller = await loaded.authenticate({}, "b")
    assert caller is not None
    assert (caller.id, calls) == ("b", ["a", "b"])
    assert await loaded.authenticate({}, "nobody") is None


async def test_a_failure_costs_only_the_plugin_s_part() -> None:
    calls: list[str] = []
    loaded = plugins(broken=Broken(), fine=Recorder("fine", calls))
    await loaded.transform(exchange(loaded))
    assert calls == ["fine"]
    fields = loaded.opening_fields(exchange(loaded))
    (warning,) = fields.pop("warnings")
    assert fields == {"who": "fine", "fine": True}
    assert (warning["plugin"], warning["hook"]) == ("broken", "opening_fields")
    await loaded.settle(exchange(loaded), None)
    assert loaded.found["broken"].failures == 3


async def test_a_failure_fails_the_request_that_asked_for_the_plugin() -> None:
    loaded = plugins(broken=Broken())
    with pytest.raises(PluginFailed, match=r"'broken'.*'transform'"):
        await loaded.transform(exchange(loaded, weather=True))


async def test_an_essential_plugin_fails_every_request() -> None:
    loaded = plugins(broken=Broken())
    loaded.found["broken"].essential = True
    with pytest.raises(PluginFailed):
        await loaded.transform(exchange(loaded))


async def test_authentication_fails_closed() -> None:
    loaded = plugins(broken=Broken(), open=Recorder("open", []))
    with pytest.raises(PluginFailed):
        await loaded.authenticate({}, "open")


async def test_a_plugin_refuses_on_purpose() -> None:
    loaded = plugins(refusing=Refusing())
    with pytest.raises(InvalidRequest, match="not like that"):
        await loaded.transform(exchange(loaded))
    assert loaded.found["refusing"].failures == 0


def test_a_broken_prompt_falls_to_the_next_plugin() -> None:
    class Writer:
        @hookimpl
        def render_prompt(self, messages: Any) -> str:
            return "prompt"

    loaded = plugins(broken=Broken(), writer=Writer())
    assert loaded.render_prompt(exchange(loaded), [], {}) == "prompt"


def test_a_broken_stage_steps_aside() -> None:
    loaded = plugins(broken=Broken())
    pipeline = Pipeline(loaded.stages(exchange(loaded), Job([1])))
    texts = [d.text for word in ("a", "bad", "b") for d in pipeline.feed(Delta(word))]
    assert texts == ["a", "bad", "b"]
    assert pipeline.finish() == []


@pytest.mark.parametrize("words", [["bad"], []], ids=["feed", "finish"])
def test_a_broken_stage_fails_the_request_that_asked_for_it(words: list[str]) -> None:
    loaded = plugins(broken=Broken())
    pipeline = Pipeline(loaded.stages(exchange(loaded, weather=True), Job([1])))
    with pytest.raises(PluginFailed, match="stage"):
        for word in words:
            pipeline.feed(Delta(word))
        pipeline.finish()


async def test_every_call_is_watched() -> None:
    seen: list[tuple[str, str, bool]] = []
    loaded = plugins(broken=Broken(), fine=Recorder("fine", []))
    loaded.isolation.watch = lambda plugin, hook, seconds, failed: seen.append(
        (plugin, hook, failed)
    )
    await loaded.transform(exchange(loaded))
    assert seen == [("broken", "transform", True), ("fine", "transform", False)]


def test_lifespans_and_routes_come_with_their_plugin() -> None:
    class Opening:
        @hookimpl
        def lifespan(self) -> Any:
            return nullcontext()

    loaded = plugins(opening=Opening())
    ((plugin, make),) = loaded.lifespan(object())  # type: ignore[arg-type]
    assert plugin.name == "opening"
    assert make() is not None


def test_a_plugin_taken_out_of_service_is_called_no_more() -> None:
    loaded = plugins(fine=Recorder("fine", []))
    assert loaded.calls("transform")
    loaded.fail(loaded.found["fine"], "tired")
    assert not loaded.calls("transform")
    assert loaded.found["fine"].summary()["reason"] == "tired"


@pytest.mark.parametrize("junk", [{"role": "user"}, "text", None])
async def test_what_is_no_message_is_the_transform_s_failure(junk: Any) -> None:
    class Leaves:
        @hookimpl
        async def transform(self, exchange: Exchange) -> None:
            exchange.messages.append(junk)

    calls: list[str] = []
    loaded = plugins(leaves=Leaves(), fine=Recorder("fine", calls))
    one = exchange(loaded)
    one.messages = [Message(role="user", content="Hi")]
    for _ in range(5):
        await loaded.transform(one)
        assert [message.text for message in one.messages] == ["Hi"]
    assert loaded.found["leaves"].breaker.state == "open"
    assert one.warnings[0]["plugin"] == "leaves"
    assert calls == ["fine"] * 5


async def test_a_list_of_messages_that_is_none_is_undone_too() -> None:
    class Empties:
        @hookimpl
        async def transform(self, exchange: Exchange) -> None:
            exchange.messages = None  # type: ignore[assignment]

    loaded = plugins(empties=Empties())
    one = exchange(loaded)
    await loaded.transform(one)
    assert one.messages == []
    assert loaded.found["empties"].last_failure == "TypeError in transform"


@pytest.mark.parametrize("key", ["id", "choices", "usage", "warnings"])
def test_fields_of_the_core_are_not_written_over(
    key: str, caplog: pytest.LogCaptureFixture
) -> None:
    class Overwrites:
        @hookimpl
        def closing_fields(self) -> dict[str, Any]:
            return {key: "mine", "other": 1}

    loaded = plugins(overwrites=Overwrites())
    fields = loaded.closing_fields(exchange(loaded))
    assert fields.keys() == {"warnings"}
    assert fields["warnings"][0]["plugin"] == "overwrites"
    assert "plugin overwrites failed in closing_fields" in caplog.text
    assert f"the field '{key}' of an answer is the server's own" in caplog.text


def test_two_plugins_with_one_field_are_told_once(caplog: pytest.LogCaptureFixture) -> None:
    loaded = plugins(a=Recorder("a", []), b=Recorder("b", []))
    for _ in range(2):
        assert loaded.opening_fields(exchange(loaded))["who"] == "b"
    told = [record.getMessage() for record in caplog.records]
    assert told == ["the plugins a and b both give 'who' in opening_fields; b wins"]


def test_two_plugins_may_give_the_same_value(caplog: pytest.LogCaptureFixture) -> None:
    class Sources:
        @hookimpl
        def opening_fields(self, exchange: Exchange) -> dict[str, Any]:
            return {"sources": exchange.sources}

    loaded = plugins(a=Sources(), b=Sources())
    one = exchange(loaded)
    one.add_source({"title": "A page"})
    assert len(loaded.opening_fields(one)["sources"]) == 1
    assert not caplog.records
