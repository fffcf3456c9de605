"""Fetching within caps, from servers that do not mean well."""

from __future__ import annotations

import asyncio
import gzip
import threading
import zlib
from collections.abc import Callable
from typing import Any

import pytest

from hookline_websearch import fetch
from hookline_websearch.fetch import Unread

Answers = Callable[..., bytes]


async def test_a_page_comes_with_its_kind_and_charset(
    fetchers: Any, web: Any, answers: Answers
) -> None:
    web.pages["/"] = answers("<p>hello", kind='text/html; charset="ISO-8859-2"')
    async with fetchers() as fetcher:
        fetched = await fetcher.fetch(web.url("/"))
    assert (fetched.media_type, fetched.charset) == ("text/html", "iso-8859-2")
    assert (fetched.body, fetched.whole, fetched.url) == (b"<p>hello", True, web.url("/"))


async def test_requests_introduce_themselves_and_nothing_else(
    fetchers: Any, web: Any, answers: Answers, monkeypatch: pytest.MonkeyPatch, canary: Any
) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, f"http://127.0.0.1:{canary.port}")
    web.pages["/"] = answers("x")
    async with fetchers(user_agent="Tester/1.0") as fetcher:
        await fetcher.fetch(web.url("/"))
    lines = web.heads[-1].splitlines()
    names = {line.partition(":")[0].lower() for line in lines[1:] if line}
    assert "User-Agent: Tester/1.0" in lines
    assert names == {"host", "accept", "accept-encoding", "connection", "user-agent"}
    assert canary.visits == 0


async def test_redirects_are_followed_with_their_cookies_to_the_cap(
    fetchers: Any, web: Any, answers: Answers
) -> None:
    web.pages["/a"] = answers("", "301 Moved", Location="/b", Set_Cookie="seen=1; Path=/")
    web.pages["/b"] = answers("", "307 Temporary", Location="/c")
    web.pages["/c"] = answers("<p>there")
    async with fetchers(max_redirects=2) as fetcher:
        fetched = await fetcher.fetch(web.url("/a"))
        assert (fetched.url, fetched.body) == (web.url("/c"), b"<p>there")
        assert "seen=1" in web.heads[-1]
        await fetcher.fetch(web.url("/c"))
        assert "seen=1" not in web.heads[-1]
    async with fetchers(max_redirects=1) as fetcher:
        with pytest.raises(Unread, match=r"redirects more often than max_redirects allows \(1\)"):
            await fetcher.fetch(web.url("/a"))


async def test_a_circle_of_redirects_ends(fetchers: Any, web: Any, answers: Answers) -> None:
    web.pages["/"] = answers("", "302 Found", Location="/")
    async with fetchers() as fetcher:
        with pytest.raises(Unread, match="redirects"):
            await fetcher.fetch(web.url("/"))
    assert len(web.paths) == 6


@pytest.mark.parametrize("target", ["//", "http://", "http://[", "\x01", "http://:80/", "a\rb"])
async def test_redirects_to_nowhere(fetchers: Any, web: Any, answers: Answers, target: str) -> None:
    web.pages["/"] = answers("", "302 Found", Location=target)
    async with fetchers(max_redirects=1) as fetcher:
        with pytest.raises(Unread):
            await fetcher.fetch(web.url("/"))


async def test_an_endless_page_is_cut(fetchers: Any, web: Any) -> None:
    sent = 0

    async def endless(writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n")
        while True:
            writer.write(b"<p>more</p>" * 5000)
            sent += 55_000
            await writer.drain()

    web.pages["/"] = endless
    async with fetchers(max_page_mb=0.5) as fetcher:
        fetched = await fetcher.fetch(web.url("/"))
    assert len(fetched.body) == 2**19
    assert not fetched.whole
    assert sent < 50e6


@pytest.mark.parametrize("encoding", ["gzip", "deflate", "raw deflate"])
async def test_packed_pages(fetchers: Any, web: Any, answers: Answers, encoding: str) -> None:
    text = b"<p>some text</p>" * 10_000
    raw = zlib.compressobj(wbits=-15)
    packed = {
        "gzip": gzip.compress(text),
        "deflate": zlib.compress(text),
        "raw deflate": raw.compress(text) + raw.flush(),
    }[encoding]
    web.pages["/"] = answers(packed, Content_Encoding=encoding.split()[-1])
    async with fetchers() as fetcher:
        assert (await fetcher.fetch(web.url("/"))).body == text


async def test_a_bomb_is_cut(fetchers: Any, web: Any, answers: Answers) -> None:
    web.pages["/"] = answers(gzip.compress(bytes(100 * 2**20), 1), Content_Encoding="gzip")
    async with fetchers(max_page_mb=1) as fetcher:
        fetched = await fetcher.fetch(web.url("/"))
    assert (len(fetched.body), fetched.whole) == (2**20, False)


@pytest.mark.parametrize("encoding", ["br", "zstd", "gzip, gzip", "nonsense"])
async def test_packing_without_a_cap_is_refused(
    fetchers: Any, web: Any, answers: Answers, encoding: str
) -> None:
    web.pages["/"] = answers(b"abc", Content_Encoding=encoding)
    async with fetchers() as fetcher:
        with pytest.raises(Unread, match="not asked for"):
            await fetcher.fetch(web.url("/"))


async def test_broken_packing(fetchers: Any, web: Any, answers: Answers) -> None:
    good = gzip.compress(b"<p>text</p>" * 1000)
    web.pages["/"] = answers(good[:10] + b"\x07" + good[11:], Content_Encoding="gzip")
    async with fetchers() as fetcher:
        with pytest.raises(Unread, match="compression is broken"):
            await fetcher.fetch(web.url("/"))


async def test_a_name_server_that_is_silent(
    fetchers: Any, web: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = threading.Event()
    monkeypatch.setattr(fetch, "CONNECT_SECONDS", 0.05)

    def silent(*about: Any, **more: Any) -> Any:
        asked.wait()
        return []

    async with fetchers(resolver=silent, robots=False) as fetcher:
        with pytest.raises(Unread, match=r"^the site does not answer$"):
            await fetcher.fetch(f"http://nobody.example:{web.port}/")
        asked.set()


@pytest.mark.parametrize("kind", ["image/png", "video/mp4", "audio/mpeg", "application/zip"])
async def test_bodies_that_are_no_text_are_not_begun(
    fetchers: Any, web: Any, answers: Answers, kind: str
) -> None:
    web.pages["/"] = answers("x", kind=kind)
    async with fetchers() as fetcher:
        with pytest.raises(Unread, match=f"it is {kind}, which is no text"):
            await fetcher.fetch(web.url("/"))


@pytest.mark.parametrize(
    "status", ["404 Not Found", "403 Forbidden", "500 Oops", "304 Not Modified"]
)
async def test_failures_of_the_site(fetchers: Any, web: Any, answers: Answers, status: str) -> None:
    web.pages["/"] = answers("sorry", status)
    async with fetchers() as fetcher:
        with pytest.raises(Unread, match=f"the site answered {status[:3]}$"):
            await fetcher.fetch(web.url("/"))


@pytest.mark.parametrize(
    "raw",
    [
        b"SSH-2.0-OpenSSH_9.2\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nX: " + b"a" * 300_000 + b"\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n" + b"".join(b"X-%d: y\r\n" % n for n in range(50_000)) + b"\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nshort",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"",
    ],
)
async def test_servers_that_speak_something_else(fetchers: Any, web: Any, raw: bytes) -> None:
    web.pages["/"] = raw
    async with fetchers(robots=False) as fetcher:
        with pytest.raises(Unread, match=r"cannot be (understood|reached)"):
            await fetcher.fetch(web.url("/"))


async def test_nobody_listens(fetchers: Any, web: Any) -> None:
    async with fetchers(robots=False, allowed_ports=[1]) as fetcher:
        with pytest.raises(Unread, match="cannot be reached"):
            await fetcher.fetch("http://127.0.0.2:1/")


async def test_a_reader_who_leaves_ends_the_connection(fetchers: Any, web: Any) -> None:
    reached = asyncio.Event()

    async def drip(writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n")
        while True:
            writer.write(b"x")
            await writer.drain()
            reached.set()
            await asyncio.sleep(0.01)

    web.pages["/"] = drip
    async with fetchers(robots=False) as fetcher:
        task = asyncio.create_task(fetcher.fetch(web.url("/")))
        await reached.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        async with asyncio.timeout(5):
            while web.open:
                await asyncio.sleep(0.01)


async def test_what_must_not_be_kept(fetchers: Any, web: Any, answers: Answers) -> None:
    web.pages["/"] = answers("x", Cache_Control="private, no-store")
    async with fetchers() as fetcher:
        assert not (await fetcher.fetch(web.url("/"))).keep
