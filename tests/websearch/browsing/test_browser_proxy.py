"""The proxy passes what the guard allows to who has a ticket, and nothing else."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

import pytest

from hookline_websearch.browser.proxy import GuardedProxy, Ticket
from hookline_websearch.guard import Guard

SITE = "127.0.0.2"


@dataclass
class Target:
    """A web server that answers with what it was asked, and keeps its connections open."""

    port: int = 0
    heads: list[str] = field(default_factory=list)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode()
                self.heads.append(head)
                length = 3 if "Content-Length: 3" in head else 0
                body = await reader.readexactly(length) + b"answer"
                writer.write(
                    b"HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 200 OK\r\nKeep-Alive: timeout=9\r\n"
                    b"Connection: keep-alive\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)
                )
                if "/large" in head:
                    writer.write(b"x" * 10**6)
                if "/close" in head:
                    return
        except (EOFError, OSError):
            pass
        finally:
            writer.close()


@pytest.fixture
async def target() -> AsyncIterator[Target]:
    site = Target()
    server = await asyncio.start_server(site.serve, SITE, 0)
    site.port = server.sockets[0].getsockname()[1]
    yield site
    server.close()


@pytest.fixture
async def proxy(target: Target) -> AsyncIterator[tuple[GuardedProxy, int]]:
    guard = Guard([f"{SITE}/32"], [target.port])  # type: ignore[list-item]
    opened = GuardedProxy(guard)
    port = int((await opened.start()).rpartition(":")[2])
    yield opened, port
    await opened.close()
    guard.close()


async def ask(port: int, request: str, ticket: Ticket | None = None, wait: bool = True) -> bytes:
    """The proxy's whole answer to a request."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    first, _, rest = request.partition("\r\n")
    leave = f"Proxy-Authorization: {ticket.authorization.decode()}\r\n" if ticket else ""
    writer.write(f"{first}\r\n{leave}{rest}".encode())
    async with asyncio.timeout(10):
        answer = await (reader.read() if wait else reader.readuntil(b"\r\n\r\n"))
    writer.close()
    return answer


Proxy = tuple[GuardedProxy, int]


async def test_plain_requests_are_passed_one_a_connection(proxy: Proxy, target: Target) -> None:
    opened, port = proxy
    url = f"http://{SITE}:{target.port}/close?a=b"
    request = (
        f"POST {url} HTTP/1.1\r\nHost: {SITE}\r\nProxy-Connection: keep-alive\r\n"
        "Content-Length: 3\r\n\r\nabcGET http://elsewhere.test/ HTTP/1.1\r\n\r\n"
    )
    async with opened.visit(10**6) as ticket:
        answer = await ask(port, request, ticket)
    head, _, body = answer.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200 OK")
    assert b"Connection: close" in head
    assert b"keep-alive" not in head.lower()
    assert body == b"abcanswer"
    (asked,) = target.heads
    assert asked.startswith("POST /close?a=b HTTP/1.1\r\n")
    assert "Proxy-" not in asked


async def test_tunnels(proxy: Proxy, target: Target) -> None:
    opened, port = proxy
    async with opened.visit(10**6) as ticket:
        request = f"CONNECT {SITE}:{target.port} HTTP/1.1\r\n\r\nGET /close HTTP/1.1\r\n\r\n"
        answer = await ask(port, request, ticket)
    assert answer.startswith(b"HTTP/1.1 200 Connection established\r\n\r\nHTTP/1.1 103")
    assert answer.endswith(b"answer")


@pytest.mark.parametrize(
    "request_line",
    [
        "CONNECT 127.0.0.1:{port} HTTP/1.1",
        "CONNECT localhost:{port} HTTP/1.1",
        "CONNECT [::1]:{port} HTTP/1.1",
        "CONNECT [::ffff:127.0.0.1]:{port} HTTP/1.1",
        "CONNECT 169.254.169.254:{port} HTTP/1.1",
        "CONNECT 0x7f000001:{port} HTTP/1.1",
        "CONNECT 127.0.0.2:22 HTTP/1.1",
        "GET http://127.0.0.1:{port}/ HTTP/1.1",
        "GET http://user@127.0.0.1:{port}/ HTTP/1.1",
        "GET http://[::1]:{port}/ HTTP/1.1",
        "GET http://2130706433:{port}/ HTTP/1.1",
        "GET / HTTP/1.1",
    ],
)
async def test_what_the_guard_refuses(proxy: Proxy, target: Target, request_line: str) -> None:
    opened, port = proxy
    async with opened.visit(10**6) as ticket:
        line = request_line.format(port=target.port)
        answer = await ask(port, f"{line}\r\nHost: {SITE}:{target.port}\r\n\r\n", ticket)
        assert ticket.refused == 1
    assert answer.startswith(b"HTTP/1.1 403 Forbidden")
    assert not target.heads


@pytest.mark.parametrize("stolen", [True, False])
async def test_without_a_ticket_nothing_is_passed(
    proxy: Proxy, target: Target, stolen: bool
) -> None:
    opened, port = proxy
    request = f"GET http://{SITE}:{target.port}/ HTTP/1.1\r\n\r\n"
    async with opened.visit(10**6) as ticket:
        pass
    answer = await ask(port, request, ticket if stolen else None)
    assert answer.startswith(b"HTTP/1.1 407 ")
    assert b"Proxy-Authenticate: Basic" in answer
    assert not target.heads


@pytest.mark.parametrize("junk", ["\r\n\r\n", "GET\r\n\r\n", "x" * 70_000, "GET / \x00\r\n\r\n"])
async def test_junk_ends_the_connection(proxy: Proxy, junk: str) -> None:
    opened, port = proxy
    async with opened.visit(10**6):
        answer = await ask(port, junk)
    assert answer == b"" or answer.startswith(b"HTTP/1.1 407 ")


async def test_a_visit_ends_at_its_cap(proxy: Proxy, target: Target) -> None:
    opened, port = proxy
    async with opened.visit(200_000) as ticket:
        request = f"GET http://{SITE}:{target.port}/large HTTP/1.1\r\n\r\n"
        answer = await ask(port, request, ticket)
        assert len(answer) <= 201_000
        assert ticket.left < 0


async def test_connections_end_with_their_visit(proxy: Proxy, target: Target) -> None:
    opened, port = proxy
    async with opened.visit(10**6) as ticket:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        leave = ticket.authorization.decode()
        request = f"CONNECT {SITE}:{target.port} HTTP/1.1\r\nProxy-Authorization: {leave}\r\n\r\n"
        writer.write(request.encode())
        assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 200")
    async with asyncio.timeout(5):
        assert await reader.read() == b""
    writer.close()
