"""The kit that plugin authors test with."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from pathlib import Path
from typing import Any, ClassVar

import pytest
from pydantic import BaseModel, Field

from hookline import Delta, Exchange, InvalidRequest, Message, Server, hookimpl
from hookline.testing import (
    LocalServer,
    PluginContractTests,
    Refused,
    WrongShape,
    check_answer,
    check_chunks,
    check_error,
)


class WeatherSettings(BaseModel):
    sky: str = Field("blue", min_length=1, description="What the sky is like.")


class WeatherFields(BaseModel):
    weather: bool = Field(False, description="Tell the model about the sky.")


class Weather:
    """A plugin as an author would write it."""

    settings_model = WeatherSettings
    request_fields = WeatherFields

    def __init__(self, settings: WeatherSettings) -> None:
        self.sky = settings.sky

    @hookimpl
    async def transform(self, exchange: Exchange) -> None:
        if exchange.fields(WeatherFields).weather:
            exchange.messages.insert(0, Message(role="system", content=f"The sky is {self.sky}."))


class TestContract(PluginContractTests):
    plugin = Weather
    settings = {"sky": "grey"}
    bad_settings = [{"sky": ""}, {"sky": 3}]
    request = {"weather": True}


def test_chat_and_stream(server: LocalServer, chat: Any, stream: Any) -> None:
    server.use(Weather, sky="red")
    server.says("It", " is", " red", ".")
    assert chat("And the sky?", weather=True).text == "It is red."
    assert "The sky is red." in server.prompts[0]
    answer = stream("And the sky?")
    assert answer.text == "It is red."
    assert answer.finish == "stop"
    assert "The sky" not in server.prompts[1]


def test_refusals_are_raised(server: LocalServer, chat: Any, stream: Any) -> None:
    for ask in (chat, stream):
        with pytest.raises(Refused) as refused:
            ask([])
        assert refused.value.status == 400
        assert refused.value.error["param"] == "messages"


class Broken:
    @hookimpl
    async def transform(self, exchange: Exchange) -> None:
        raise RuntimeError("out of order")


def test_what_fails_in_a_plugin_fails_the_test(server: LocalServer, chat: Any) -> None:
    server.use(Broken)
    with pytest.raises(AssertionError, match=r"broken failed in transform.*out of order"):
        chat()
    server.tolerant = True
    assert chat().text == "Hello, world."


def test_a_plugin_that_cannot_start(server: LocalServer) -> None:
    server.use(Weather, sky="")
    with pytest.raises(AssertionError, match=r"'weather' is failed: .*sky"):
        server.plugin("weather")


def test_a_plugin_that_cannot_start_fails_the_test(server: LocalServer, chat: Any) -> None:
    class NoDisk:
        @hookimpl
        def lifespan(self, server: Server) -> None:
            raise OSError("no disk")

    server.use(NoDisk)
    with pytest.raises(AssertionError, match=r"'nodisk' is failed: cannot start: OSError: no disk"):
        chat()
    server.stop()
    server.tolerant = True
    assert chat().text == "Hello, world."


def test_the_clock_and_the_allowance(clock: Any, allowance: Any, chat: Any) -> None:
    allowance(2)
    chat()
    chat()
    assert allowance.left == 0
    with pytest.raises(Refused) as refused:
        chat()
    assert refused.value.status == 402
    clock.advance(hours=13)
    chat()
    assert allowance.left == 1


SHOUT = """
    from dataclasses import replace
    from hookline import hookimpl

    class Loud:
        def feed(self, delta):
            yield replace(delta, text=delta.text.upper())

        def finish(self):
            return ()

    class Shout:
        @hookimpl
        def stage(self):
            return Loud()
"""


def test_a_plugin_for_one_test(server: LocalServer, tmp_plugin: Any, chat: Any) -> None:
    assert tmp_plugin("shout", SHOUT) == "shout"
    assert chat().text == "HELLO, WORLD."
    listed = server.client.get("/health").json()["plugins"]
    assert ("shout", "1.0", "active") in [(p["name"], p["version"], p["state"]) for p in listed]


def test_only_plugins(server: LocalServer, only_plugins: Any) -> None:
    only_plugins("thinking")
    listed = server.client.get("/health").json()["plugins"]
    assert [p["name"] for p in listed if p["state"] == "active"] == ["scripted-model", "thinking"]


def test_leaving_frees_the_generator(server: LocalServer, stream: Any) -> None:
    server.plays(lambda prompt, job: (f"{i} " for i in range(10**6)))
    answer = stream(leave_after=3)
    assert answer.left
    assert answer.finish is None
    server.wait_until_idle()


def test_its_thread_ends(server: LocalServer, chat: Any) -> None:
    chat()
    server.stop()
    assert "hookline-test-server" not in [thread.name for thread in threading.enumerate()]


def test_it_starts_once_for_many_threads(server: LocalServer) -> None:
    texts: list[str] = []
    threads = [threading.Thread(target=lambda: texts.append(server.chat().text)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert texts == ["Hello, world."] * 4


def test_start_errors_are_raised(server: LocalServer) -> None:
    server.use("no-such-plugin")
    with pytest.raises(Exception, match="There is no plugin 'no-such-plugin'"):
        server.start()


def test_setting_up_comes_first(server: LocalServer, chat: Any) -> None:
    chat()
    with pytest.raises(RuntimeError, match="before the server starts"):
        server.use(Weather)


def test_the_server_s_own_loop(server: LocalServer) -> None:
    async def tokens() -> list[int]:
        return server.kernel.engine.tokenize("ab")

    assert server.run(tokens()) == [97, 98]


# Contract tests can fail


class Leaky(Weather):
    @hookimpl
    async def admit(self, exchange: Exchange) -> None:
        if exchange.fields(WeatherFields).weather and getattr(exchange.request, "stream", False):
            raise InvalidRequest("Not as a stream.")


class Stuck(Weather):
    @hookimpl
    def stage(self) -> Any:
        return Swallow()


class Swallow:
    def __init__(self) -> None:
        self._seen = 0

    def feed(self, delta: Delta) -> Iterable[Delta]:
        self._seen += 1
        return [delta] if self._seen > 2 else []

    def finish(self) -> Iterable[Delta]:
        return ()


def contract(kind: type) -> PluginContractTests:
    class Tests(PluginContractTests):
        plugin = kind
        request = {"weather": True}

    return Tests()


def test_the_contract_finds_a_plugin_that_refuses_streams(server: LocalServer) -> None:
    server.use(Leaky)
    with pytest.raises(Refused, match="Not as a stream"):
        contract(Leaky).test_it_works_plain_and_streamed(server)


def test_the_contract_finds_settings_that_are_accepted(tmp_path: Any) -> None:
    tests = contract(Weather)
    with pytest.raises(AssertionError, match="it accepts"):
        tests._refused(tmp_path, {"sky": "green"}, "sky")


class Remembers(Weather):
    """Keeps what it was told for whoever asks next, in any server."""

    told: ClassVar[list[str]] = []

    @hookimpl
    async def transform(self, exchange: Exchange) -> None:
        self.told.append(exchange.messages[-1].text)
        exchange.messages.insert(0, Message(role="system", content=" ".join(self.told)))


def test_the_contract_finds_text_that_is_kept_for_other_servers(
    server: LocalServer, tmp_path: Path
) -> None:
    server.use(Remembers)
    with pytest.raises(AssertionError, match="alpha-secret, which another server was told"):
        contract(Remembers).test_what_one_server_was_told_stays_there(server, tmp_path)


def test_the_contract_names_a_thread_that_is_left(
    server: LocalServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hookline.testing.server.PATIENCE", 2.0)
    over = threading.Event()

    class Starts(Weather):
        @hookimpl
        async def admit(self) -> None:
            threading.Thread(target=over.wait, args=(60,), name="left-behind").start()

    server.use(Starts)
    try:
        with pytest.raises(AssertionError, match=r"threads are left behind: .*'left-behind'"):
            contract(Starts).test_it_stops_and_starts_again(server)
    finally:
        over.set()


# Shapes

GOOD_CHUNK = {
    "id": "a",
    "object": "chat.completion.chunk",
    "created": 1,
    "model": "m",
    "choices": [{"index": 0, "delta": {"role": "assistant"}, "finish_reason": None}],
}


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"object": "text"}, "not a chunk"),
        ({"id": "b"}, "'id' is the same"),
        ({"choices": []}, "only the very last chunk"),
        (
            {"choices": [{"index": 0, "delta": {"role": "assistant"}, "finish_reason": None}]},
            "role comes once",
        ),
        ({"choices": [{"index": 0, "delta": {}, "finish_reason": None}]}, "a choice ends with"),
        ({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}, "has 'usage'"),
        ({"sources": [{"index": 2}]}, "sources are numbered"),
    ],
)
def test_wrong_streams_are_told(change: dict[str, Any], problem: str) -> None:
    end = {**GOOD_CHUNK, "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    if "usage" not in problem:
        end |= {"usage": usage, "timings": {}}
    middle = {
        **GOOD_CHUNK,
        "choices": [{"index": 0, "delta": {"content": "x"}, "finish_reason": None}],
    }
    chunks = [GOOD_CHUNK, {**middle, **change}, end]
    if problem in ("a choice ends with", "has 'usage'"):
        chunks = [GOOD_CHUNK, {**middle, **change}]
    with pytest.raises(WrongShape, match=problem):
        check_chunks(chunks)


def test_wrong_bodies_are_told() -> None:
    with pytest.raises(WrongShape):
        check_answer({"id": "a"})
    with pytest.raises(WrongShape):
        check_error({"error": "nothing"})
    with pytest.raises(WrongShape):
        check_error({"error": {"message": "m", "type": "t", "param": None, "code": None}, "x": 1})


ELSEWHERE = """
    from hookline import StartError, hookimpl

    class Elsewhere:
        @hookimpl
        def create_engine(self, model):
            raise StartError(f"no {model.engine} here")
"""


def test_an_installed_engine_goes_before_the_scripted_one(
    server: LocalServer, tmp_plugin: Any
) -> None:
    tmp_plugin("elsewhere", ELSEWHERE)
    server.configure(model={"engine": "elsewhere"})
    with pytest.raises(Exception, match="no elsewhere here"):
        server.start()
