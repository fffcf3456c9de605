"""Clients that leave, and clients that do not read."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest

from hookline import Exchange, Job, hookimpl
from hookline.api.sse import event_stream
from hookline.engines.scripted import Line, Pause, say

BODY = {"messages": [{"role": "user", "content": "Hello there"}]}


def request(path: str = "/v1/chat/completions", **fields: Any) -> bytes:
    body = json.dumps({**BODY, **fields} if "chat" in path else fields).encode()
    head = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
    return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body


@contextlib.asynccontextmanager
async def client_of(server: Any, **fields: Any) -> AsyncIterator[asyncio.StreamReader]:
    """A client that sends a request, and is gone when the block ends."""
    port = int(server.url.rpartition(":")[2])
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(request(**fields))
    await writer.drain()
    yield reader
    writer.transport.abort()


def forever(prompt: str, job: Job) -> Iterator[Line]:
    while True:
        yield "word "
        yield Pause(0.002)


def busy(server: Any, running: int, queued: int) -> Callable[[], bool]:
    def check() -> bool:
        stats = server.engine.stats()
        return (stats.running, stats.queued) == (running, queued)

    return check


async def check_all_over(server: Any, until: Any, notes: Any, left: int = 1) -> None:
    """Slots are free, nothing is in flight, and settle was called once a request."""
    await until(busy(server, 0, 0))
    await until(lambda: server.kernel.in_flight == 0)
    assert [type(error) for error in notes.settled[:left]] == [asyncio.CancelledError] * left
    assert len(notes.settled) == left
    assert server.engine.stats().kv_used_tokens == 0


PATHS = [
    {"stream": False},
    {"stream": True},
    {"stream": True, "n": 3},
    {"stream": False, "n": 3},
    {"stream": True, "path": "/v1/completions", "prompt": "x"},
    {"stream": False, "path": "/v1/completions", "prompt": ["x", "y"]},
]


@pytest.mark.parametrize("fields", PATHS, ids=str)
async def test_while_decoding(on_port: Any, until: Any, notes: Any, fields: dict[str, Any]) -> None:
    jobs = len(fields.get("prompt", "x")) * fields.get("n", 1)
    async with on_port(script=forever, plugins={"notes": notes}) as server:
        async with client_of(server, **fields) as reader:
            await until(busy(server, jobs, 0))
            await until(lambda: server.engine.stats().kv_used_tokens > 10)
            if fields["stream"]:
                assert b"word " in await reader.readuntil(b"word ")
        await check_all_over(server, until, notes)
        metrics = (await server.client.get("/metrics")).text
        assert f'hookline_choices_total{{reason="cancelled"}} {jobs}.0' in metrics


@pytest.mark.parametrize("stream", [False, True])
async def test_with_the_last_byte_of_the_request(
    on_port: Any, until: Any, notes: Any, stream: bool
) -> None:
    """The body and the end of the connection come at once, before the handler has begun."""
    async with on_port(script=forever, plugins={"notes": notes}) as server:
        for _ in range(3):
            with socket.create_connection(("127.0.0.1", int(server.url.rpartition(":")[2]))) as one:
                one.sendall(request(stream=stream))
        assert (await server.chat(max_tokens=3)).status_code == 200
        await until(busy(server, 0, 0))
        await until(lambda: server.kernel.in_flight == 0)
        assert [error for error in notes.settled if error is None] == [None]


@pytest.mark.parametrize("stream", [False, True])
async def test_in_the_queue(on_port: Any, until: Any, notes: Any, stream: bool) -> None:
    engine = {"parallel": 1}
    async with on_port(script=forever, engine=engine, plugins={"notes": notes}) as server:
        running = asyncio.create_task(server.chat(max_tokens=200))
        await until(busy(server, 1, 0))
        async with client_of(server, stream=stream):
            await until(busy(server, 1, 1))
            behind = asyncio.create_task(server.chat(max_tokens=3))
            await until(busy(server, 1, 2))
        await until(busy(server, 1, 1))
        assert [type(error) for error in notes.settled] == [asyncio.CancelledError]
        assert not running.done()
        assert (await running).json()["usage"]["completion_tokens"] == 200
        assert (await behind).json()["usage"]["completion_tokens"] == 3
        await until(lambda: server.kernel.in_flight == 0)
        assert notes.settled[1:] == [None, None]


@pytest.mark.parametrize("stream", [False, True])
async def test_in_prefill(on_port: Any, until: Any, notes: Any, stream: bool) -> None:
    engine = {"prefill_chunk": 1, "step_seconds": 0.01}
    async with on_port(engine=engine, plugins={"notes": notes}) as server:
        async with client_of(server, stream=stream):
            await until(lambda: 0 < server.engine.stats().kv_used_tokens < 20)
        await check_all_over(server, until, notes)


@pytest.mark.parametrize("stream", [False, True])
async def test_while_a_plugin_works(on_port: Any, until: Any, notes: Any, stream: bool) -> None:
    class Slow:
        entered = left = 0

        @hookimpl
        async def transform(self, exchange: Exchange) -> None:
            self.entered += 1
            try:
                await asyncio.sleep(60)
            finally:
                self.left += 1

    slow = Slow()
    async with on_port(plugins={"slow": slow, "notes": notes}) as server:
        async with client_of(server, stream=stream):
            await until(lambda: slow.entered == 1)
        await check_all_over(server, until, notes)
        assert slow.left == 1


async def test_between_the_response_and_its_first_chunk(
    on_port: Any, until: Any, notes: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The handler has returned, and the generator of the body has never been started."""
    held = asyncio.Event()

    def never_started(chunks: Any) -> Any:
        response: Any = event_stream(chunks)
        started = response.response

        class Late:
            async def __aenter__(self) -> Any:
                held.set()
                await asyncio.sleep(60)
                return started

            async def __aexit__(self, *_: Any) -> None:
                raise AssertionError("never entered")

        response.response = Late()
        return response

    monkeypatch.setattr("hookline.api.chat.event_stream", never_started)
    async with on_port(script=forever, plugins={"notes": notes}) as server:
        async with client_of(server, stream=True):
            await held.wait()
            await until(busy(server, 1, 0))
        await check_all_over(server, until, notes)


@pytest.mark.parametrize("stream", [False, True])
async def test_many_at_once_disturb_nobody(
    on_port: Any, until: Any, notes: Any, stream: bool
) -> None:
    engine = {"parallel": 2}
    async with on_port(script=forever, engine=engine, plugins={"notes": notes}) as server:
        staying = asyncio.create_task(server.chat(max_tokens=300))
        await until(busy(server, 1, 0))
        async with contextlib.AsyncExitStack() as leaving:
            for _ in range(12):
                await leaving.enter_async_context(client_of(server, stream=stream))
            await until(busy(server, 2, 11))
        answer = await staying
        assert answer.json()["usage"]["completion_tokens"] == 300
        await until(lambda: server.kernel.in_flight == 0)
        assert len(notes.settled) == 13
        cancelled = [e for e in notes.settled if isinstance(e, asyncio.CancelledError)]
        assert len(cancelled) == 12


async def test_a_client_that_leaves_after_its_answer_has_not_left(
    on_port: Any, until: Any, notes: Any
) -> None:
    async with on_port(script=say("a"), plugins={"notes": notes}) as server:
        async with client_of(server, stream=True) as reader:
            await reader.readuntil(b"[DONE]")
        await until(lambda: server.kernel.in_flight == 0)
        assert notes.settled == [None]


@contextlib.contextmanager
def deaf_client(server: Any, **fields: Any) -> Iterator[socket.socket]:
    """A client with a small buffer that sends a request and reads nothing."""
    deaf = socket.socket()
    deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    deaf.connect(("127.0.0.1", int(server.url.rpartition(":")[2])))
    deaf.sendall(request(**fields))
    try:
        yield deaf
    finally:
        deaf.close()


LONG = "Y" * 4000


async def test_who_does_not_read_keeps_only_itself_waiting(
    on_port: Any, until: Any, notes: Any
) -> None:
    """Its slot is free as soon as its answer is computed, and it gets all of it later."""
    tokens = 1600
    script = say(*([LONG] * tokens))
    engine = {"context": 2 * tokens, "parallel": 1}
    async with on_port(script=script, engine=engine, plugins={"notes": notes}) as server:
        with deaf_client(server, stream=True, max_tokens=tokens) as deaf:
            await until(busy(server, 1, 0))
            other = await server.chat(max_tokens=1)
            assert other.json()["choices"][0]["message"]["content"] == LONG
            assert server.kernel.in_flight == 1
            deaf.settimeout(20)
            deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2**22)
            received = await asyncio.to_thread(_read_all, deaf)
        assert received.count(b"Y") == tokens * len(LONG)
        assert b"[DONE]" in received
        await until(lambda: server.kernel.in_flight == 0)
        assert notes.settled == [None, None]


def _read_all(client: socket.socket) -> bytes:
    data = bytearray()
    while not data.endswith(b"0\r\n\r\n"):
        piece = client.recv(1 << 20)
        if not piece:
            break
        data += piece
    return bytes(data)


async def test_who_does_not_read_and_leaves(on_port: Any, until: Any, notes: Any) -> None:
    """The server is stuck sending when the client goes: the job goes too."""
    script = say(*([LONG] * 3000))
    engine = {"context": 8000, "step_seconds": 0.0005}
    async with on_port(script=script, engine=engine, plugins={"notes": notes}) as server:
        with deaf_client(server, stream=True):
            await until(lambda: server.engine.stats().kv_used_tokens > 1500)
        await check_all_over(server, until, notes)
