"""What the tests of reading share: a web server to read, and a canary that nobody may reach."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from hookline import Server
from hookline_websearch.fetch import Fetcher
from hookline_websearch.guard import Guard
from hookline_websearch.reader import Reader, reader
from hookline_websearch.reading_settings import ReadingSettings

Answer = bytes | Callable[[asyncio.StreamWriter], Awaitable[None]]

SITE = "127.0.0.2"
"""Where the pages are; the rest of loopback is forbidden ground."""


def answer(
    body: bytes | str = b"", status: str = "200 OK", *, kind: str = "text/html", **headers: str
) -> bytes:
    """A whole HTTP answer."""
    data = body.encode() if isinstance(body, str) else body
    lines = [f"HTTP/1.1 {status}", f"Content-Type: {kind}", f"Content-Length: {len(data)}"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "Connection: close", "", ""]).encode() + data


@dataclass
class Web:
    """A web server. ``pages`` are answers by path, or what writes them."""

    port: int = 0
    pages: dict[str, Answer] = field(default_factory=dict)
    heads: list[str] = field(default_factory=list)
    open: int = 0

    def url(self, path: str) -> str:
        return f"http://{SITE}:{self.port}{path}"

    @property
    def paths(self) -> list[str]:
        """What was asked for, rules for robots left out."""
        paths = [head.split(" ")[1] for head in self.heads]
        return [path for path in paths if path != "/robots.txt"]

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.open += 1
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            self.heads.append(head)
            page = self.pages.get(head.split(" ")[1], answer("no", "404 Not Found"))
            if isinstance(page, bytes):
                writer.write(page)
            else:
                await page(writer)
            await writer.drain()
        except (OSError, EOFError):
            pass
        finally:
            self.open -= 1
            writer.close()


@pytest.fixture
async def web() -> AsyncIterator[Web]:
    site = Web()
    server = await asyncio.start_server(site.serve, SITE, 0)
    site.port = server.sockets[0].getsockname()[1]
    yield site
    server.close()


@dataclass
class Canary:
    """Listens on all addresses of the machine, v4 and v6; nobody may come."""

    port: int
    visits: int = 0


@pytest.fixture
async def canary() -> AsyncIterator[Canary]:
    listener = socket.create_server(("::", 0), family=socket.AF_INET6, dualstack_ipv6=True)
    bird = Canary(listener.getsockname()[1])

    async def visited(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        bird.visits += 1
        writer.close()

    server = await asyncio.start_server(visited, sock=listener)
    yield bird
    server.close()


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy machine may stop for seconds while a test connects to itself."""
    monkeypatch.setattr("hookline_websearch.fetch.CONNECT_SECONDS", 60.0)


Settings = Callable[..., ReadingSettings]


@pytest.fixture
def reading_settings(web: Web) -> Settings:
    """Settings under which the site may be read."""

    def make(**about: Any) -> ReadingSettings:
        defaults: dict[str, Any] = {
            "allowed_networks": [f"{SITE}/32"],
            "allowed_ports": [web.port],
            "browser": False,
            "reading_processes": 1,
        }
        return ReadingSettings(**{**defaults, **about})

    return make


Fetchers = Callable[..., AbstractAsyncContextManager[Fetcher]]


@pytest.fixture
def fetchers(reading_settings: Settings) -> Fetchers:
    """Makes fetchers; ``resolver`` stands in for the name server."""

    @asynccontextmanager
    async def make(resolver: Any = None, **about: Any) -> AsyncIterator[Fetcher]:
        settings = reading_settings(**about)
        guard = Guard(settings.allowed_networks, settings.allowed_ports, resolver)
        fetcher = Fetcher(settings, guard)
        with contextlib.closing(guard):
            try:
                yield fetcher
            finally:
                await fetcher.close()

    return make


Readers = Callable[..., AbstractAsyncContextManager[Reader]]


@pytest.fixture
def readers(reading_settings: Settings, tmp_path: Path) -> Readers:
    """Makes readers; ``documents`` is what the server's parser answers."""

    @asynccontextmanager
    async def make(documents: Any = None, **about: Any) -> AsyncIterator[Reader]:
        async def parse(data: bytes, name: str, media_type: str | None = None) -> Any:
            return documents(data, name) if documents else None

        server = cast(Server, SimpleNamespace(data_dir=tmp_path, parse_document=parse))
        async with reader(reading_settings(**about), server) as opened:
            yield opened

    return make


@pytest.fixture
def answers() -> Callable[..., bytes]:
    """Writes HTTP answers."""
    return answer
