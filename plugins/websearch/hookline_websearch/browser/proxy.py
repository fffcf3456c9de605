"""A proxy on loopback through which the browser reaches what the guard allows, and nothing else.

A browser looks up names by itself and follows whatever a page tells it to. Here it has no way but
this one: the proxy looks up each name once, connects to an address that was checked, and counts
what comes back. Only visits that have a ticket are served, so it is of no use to other programs of
the machine.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import logging
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from hookline_websearch.guard import Guard, Refused

log = logging.getLogger(__name__)

HEAD_MAX = 64 * 1024
HEAD_SECONDS = 10.0
PIECE = 64 * 1024
CONNECTIONS = 100
"""Connections of one visit."""

HOP = {b"connection", b"proxy-connection", b"keep-alive", b"proxy-authorization", b"upgrade"}
"""Headers about one connection, which are not passed on."""


class Denied(Exception):
    """The proxy's own answer: a status line's number and reason."""


@dataclass(slots=True, eq=False)
class Ticket:
    """Leave for one visit to load so many bytes. ``refused`` counts what the guard did not
    allow."""

    left: int
    name: str = field(default_factory=lambda: secrets.token_hex(8))
    secret: str = field(default_factory=lambda: secrets.token_hex(16))
    refused: int = 0
    tasks: set[asyncio.Task[None]] = field(default_factory=set)

    @property
    def authorization(self) -> bytes:
        """What its requests carry."""
        return b"Basic " + base64.b64encode(f"{self.name}:{self.secret}".encode())


@dataclass(frozen=True, slots=True)
class Head:
    """The beginning of a request or an answer."""

    first: bytes
    headers: list[tuple[bytes, bytes]]

    def get(self, name: bytes) -> bytes:
        """A header's value, or nothing."""
        return next((value for key, value in self.headers if key.lower() == name), b"")

    def passed_on(self, first: bytes) -> bytes:
        """The head for the next connection, which carries this one message."""
        kept = [key + b": " + value for key, value in self.headers if key.lower() not in HOP]
        return b"\r\n".join([first, *kept, b"Connection: close", b"", b""])


class GuardedProxy:
    """The proxy. ``start`` gives its address."""

    def __init__(self, guard: Guard) -> None:
        self._guard = guard
        self._tickets: dict[bytes, Ticket] = {}
        self._server: asyncio.Server | None = None

    async def start(self) -> str:
        """Begins to listen; the URL for the browser."""
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0, limit=HEAD_MAX)
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    async def close(self) -> None:
        """Ends every connection."""
        for ticket in list(self._tickets.values()):
            await self._end(ticket)
        if self._server is not None:
            self._server.close()
            await self._server.wait_closed()

    @asynccontextmanager
    async def visit(self, most: int) -> AsyncIterator[Ticket]:
        """A ticket for ``most`` bytes; its connections end with it."""
        ticket = Ticket(most)
        self._tickets[ticket.authorization] = ticket
        try:
            yield ticket
        finally:
            await self._end(ticket)

    async def _end(self, ticket: Ticket) -> None:
        self._tickets.pop(ticket.authorization, None)
        for task in ticket.tasks:
            task.cancel()
        if ticket.tasks:
            await asyncio.wait(ticket.tasks)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await self._serve(reader, writer)
        except Denied as error:
            await _say(writer, str(error))
        except (OSError, EOFError, asyncio.LimitOverrunError, TimeoutError, ValueError) as error:
            log.debug("browser connection: %r", error)
        finally:
            writer.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        async with asyncio.timeout(HEAD_SECONDS):
            head = await _head(reader)
        ticket = self._tickets.get(head.get(b"proxy-authorization"))
        if ticket is None:
            raise Denied("407 Proxy Authentication Required")
        if len(ticket.tasks) >= CONNECTIONS:
            raise Denied("429 Too Many Requests")
        task = asyncio.create_task(self._forward(ticket, head, reader, writer))
        ticket.tasks.add(task)
        task.add_done_callback(ticket.tasks.discard)
        # The task's own errors are answers; that the visit ended is none.
        with contextlib.suppress(asyncio.CancelledError):
            await task

    async def _forward(
        self,
        ticket: Ticket,
        head: Head,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        method, target, _ = head.first.split(b" ", 2)
        tunnel = method == b"CONNECT"
        url = urlsplit(f"//{target.decode('ascii')}" if tunnel else target.decode("ascii"))
        far_reader, far_writer = await self._connect(ticket, url.hostname, url.port or 80)
        try:
            if tunnel:
                writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
                await _both(ticket, (reader, writer), (far_reader, far_writer))
            else:
                path = target.split(b"/", 3)[3:] or [b""]
                far_writer.write(head.passed_on(method + b" /" + path[0] + b" HTTP/1.1"))
                await _one_message(ticket, head, (reader, writer), (far_reader, far_writer))
        finally:
            far_writer.close()

    async def _connect(
        self, ticket: Ticket, host: str | None, port: int
    ) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        try:
            return await self._guard.open(host or "", port)
        except Refused as error:
            ticket.refused += 1
            raise Denied("403 Forbidden") from error
        except OSError as error:
            raise Denied("502 Bad Gateway") from error


Ends = tuple[asyncio.StreamReader, asyncio.StreamWriter]


async def _one_message(ticket: Ticket, head: Head, near: Ends, far: Ends) -> None:
    """Passes one request's body and one answer: a second request on this connection would go to
    the first one's server, wherever it was meant to go."""
    left = int(head.get(b"content-length") or 0)
    while left > 0 and (data := await near[0].read(min(left, PIECE))):
        far[1].write(data)
        await far[1].drain()
        left -= len(data)
    answer = await _head(far[0])
    while answer.first.split(b" ")[1:2] in ([b"100"], [b"103"]):
        answer = await _head(far[0])
    near[1].write(answer.passed_on(answer.first))
    await _pump(far[0], near[1], ticket)


async def _both(ticket: Ticket, near: Ends, far: Ends) -> None:
    """Passes bytes both ways until either side ends."""
    ways = [
        asyncio.create_task(_pump(near[0], far[1], None)),
        asyncio.create_task(_pump(far[0], near[1], ticket)),
    ]
    try:
        await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for way in ways:
            way.cancel()
        await asyncio.gather(*ways, return_exceptions=True)


async def _pump(
    source: asyncio.StreamReader, sink: asyncio.StreamWriter, ticket: Ticket | None
) -> None:
    while data := await source.read(PIECE):
        if ticket is not None:
            ticket.left -= len(data)
            if ticket.left < 0:
                return
        sink.write(data)
        await sink.drain()


async def _head(reader: asyncio.StreamReader) -> Head:
    lines = (await reader.readuntil(b"\r\n\r\n"))[:-4].split(b"\r\n")
    pairs = [line.partition(b":") for line in lines[1:]]
    return Head(lines[0], [(key.strip(), value.strip()) for key, _, value in pairs])


async def _say(writer: asyncio.StreamWriter, status: str) -> None:
    ask = 'Proxy-Authenticate: Basic realm="hookline"\r\n' if status.startswith("407") else ""
    with contextlib.suppress(OSError):
        writer.write(
            f"HTTP/1.1 {status}\r\n{ask}Content-Length: 0\r\nConnection: close\r\n\r\n".encode()
        )
        await writer.drain()
