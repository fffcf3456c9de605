"""Fetching: from a URL to the bytes behind it, within the guard's rules and under caps."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass
from email.message import Message

import httpcore
import httpx

from hookline_websearch.body import BadBody, Unpacked
from hookline_websearch.guard import Guard, GuardedBackend, Refused
from hookline_websearch.reading_settings import ReadingSettings
from hookline_websearch.robots import ROBOTS_MAX, Robots

CONNECT_SECONDS = 3.0
READ_SECONDS = 15.0
"""Seconds of silence; the caller's deadline counts for all of it."""

ACCEPT = "text/html,application/xhtml+xml,text/markdown,text/plain;q=0.9,*/*;q=0.5"

NEVER_TEXT = ("image/", "audio/", "video/", "font/", "application/zip", "application/gzip")
"""Kinds of content whose bodies are not even begun."""

FAILURES = (
    httpx.HTTPError,
    httpx.InvalidURL,
    httpcore.NetworkError,
    httpcore.ProtocolError,
    httpcore.TimeoutException,
    httpcore.UnsupportedProtocol,
)


class Unread(Exception):
    """A page cannot be had; ``str(error)`` says why, as half a sentence. ``url`` is how far it
    came."""

    def __init__(self, note: str, url: str = "") -> None:
        super().__init__(note)
        self.url = url


@dataclass(frozen=True, slots=True)
class Fetched:
    """What a server sent. ``body`` is cut to the cap where ``whole`` is False."""

    url: str
    media_type: str
    charset: str
    body: bytes
    whole: bool = True
    keep: bool = True
    """Whether it may be kept for later."""


class Transport(httpx.AsyncBaseTransport):
    """HTTP over connections that the guard makes: no proxy, no credentials of this machine."""

    def __init__(self, guard: Guard, connections: int) -> None:
        self._pool = httpcore.AsyncConnectionPool(
            ssl_context=httpx.create_ssl_context(),
            max_connections=connections,
            max_keepalive_connections=connections,
            keepalive_expiry=5.0,
            network_backend=GuardedBackend(guard),
        )

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Sends one request."""
        answer = await self._pool.handle_async_request(
            httpcore.Request(
                method=request.method,
                url=httpcore.URL(
                    scheme=request.url.raw_scheme,
                    host=request.url.raw_host,
                    port=request.url.port,
                    target=request.url.raw_path,
                ),
                headers=request.headers.raw,
                content=request.stream,
                extensions=request.extensions,
            )
        )
        return httpx.Response(
            answer.status,
            headers=answer.headers,
            stream=_Stream(answer),
            extensions=answer.extensions,
        )

    async def aclose(self) -> None:
        """Closes every connection."""
        await self._pool.aclose()


class _Stream(httpx.AsyncByteStream):
    def __init__(self, answer: httpcore.Response) -> None:
        self._answer = answer

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for chunk in self._answer.aiter_stream():
            yield chunk

    async def aclose(self) -> None:
        await self._answer.aclose()


class Fetcher:
    """Fetches for all requests of a server, so many at once."""

    def __init__(self, settings: ReadingSettings, guard: Guard) -> None:
        self._settings = settings
        self._guard = guard
        # One connection more for each page: its robots.txt may be on the way meanwhile.
        self._transport = Transport(guard, settings.parallel_pages * 2)
        self._places = asyncio.Semaphore(settings.parallel_pages)
        self._robots = Robots(settings.robots_agent, self._robots_txt)

    async def fetch(self, url: str) -> Fetched:
        """What is behind a URL. Raises Unread."""
        try:
            async with self._places, self._client() as client:
                return await self._follow(client, client.build_request("GET", url), ask=True)
        except (*FAILURES, BadBody, Refused) as error:
            raise Unread(_explained(error), url) from error

    async def permit(self, url: str) -> None:
        """Raises Unread for a URL that the guard or the site's rules do not allow."""
        try:
            self._guard.check(url)
        except Refused as error:
            raise Unread(str(error), url) from error
        if self._settings.robots and (reason := await self._robots.refusal(url)):
            raise Unread(reason, url)

    async def close(self) -> None:
        """Closes every connection."""
        await self._transport.aclose()

    @contextlib.asynccontextmanager
    async def _client(self) -> AsyncIterator[httpx.AsyncClient]:
        """A client for one page: cookies last as long as its redirects. It is not closed, since
        that would close the connections of all."""
        yield httpx.AsyncClient(
            transport=self._transport,
            trust_env=False,
            headers={
                "User-Agent": self._settings.user_agent,
                "Accept": ACCEPT,
                "Accept-Encoding": "gzip, deflate",
            },
            timeout=httpx.Timeout(READ_SECONDS, connect=CONNECT_SECONDS, pool=None),
        )

    async def _follow(
        self, client: httpx.AsyncClient, request: httpx.Request, *, ask: bool
    ) -> Fetched:
        for _ in range(self._settings.max_redirects + 1):
            url = str(request.url)
            if ask:
                await self.permit(url)
            else:
                self._guard.check(url)
            response = await client.send(request, stream=True)
            async with contextlib.aclosing(response):
                if response.next_request is None:
                    most = int(self._settings.max_page_mb * 2**20) if ask else ROBOTS_MAX
                    return await _content(response, most)
                request = response.next_request
        most = self._settings.max_redirects
        raise Unread(f"it redirects more often than max_redirects allows ({most})", url)

    async def _robots_txt(self, url: str) -> bytes | None:
        """The rules of a site; None where they cannot be had, nothing where there are none."""
        try:
            async with self._client() as client:
                fetched = await self._follow(client, client.build_request("GET", url), ask=False)
                return fetched.body
        except Missing:
            return b""
        except (*FAILURES, BadBody, Refused, Unread):
            return None


class Missing(Unread):
    """The server says that there is nothing (4xx)."""


async def _content(response: httpx.Response, most: int) -> Fetched:
    url, status = str(response.url), response.status_code
    if 400 <= status < 500:
        raise Missing(f"the site answered {status}", url)
    if not 200 <= status < 300:
        raise Unread(f"the site answered {status}", url)
    declared = Message()
    declared["Content-Type"] = response.headers.get("Content-Type", "").strip()
    media_type = declared.get_content_type() if declared["Content-Type"] else ""
    if media_type.startswith(NEVER_TEXT):
        raise Unread(f"it is {media_type[:80]}, which is no text", url)
    unpacked = Unpacked(response.headers.get("Content-Encoding", ""))
    body, whole = await unpacked.read(response.aiter_raw(), most)
    return Fetched(
        url=url,
        media_type=media_type,
        charset=declared.get_content_charset() or "",
        body=body,
        whole=whole,
        keep="no-store" not in response.headers.get("Cache-Control", "").lower(),
    )


def _explained(error: Exception) -> str:
    if isinstance(error, Refused | BadBody):
        return str(error)
    if isinstance(error, httpx.InvalidURL | httpx.UnsupportedProtocol):
        return "it is not a web address"
    if isinstance(error, httpcore.TimeoutException | httpx.TimeoutException):
        return "the site does not answer"
    if isinstance(error, httpcore.ConnectError):
        bad = "CERTIFICATE_VERIFY_FAILED" in str(error)
        return "the site's certificate is not valid" if bad else "the site cannot be reached"
    return "the site answers in a way that cannot be understood"
