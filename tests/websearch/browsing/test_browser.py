"""A real Chromium: what it shows, and that it goes nowhere else."""

from __future__ import annotations

import asyncio
import contextlib
import struct
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

from hookline_websearch.browser import Browser, Unseen
from hookline_websearch.browser.find import find_browser
from hookline_websearch.content.html import read_html
from hookline_websearch.guard import Guard
from hookline_websearch.reading_settings import ReadingSettings

FOUND = find_browser()
needs_browser = pytest.mark.skipif(isinstance(FOUND, str), reason=str(FOUND))

SITE = "127.0.0.2"
PAGES = Path(__file__).parent.parent / "pages"

Page = str | Callable[[asyncio.StreamWriter], Any]


class Web:
    """A site on one address of loopback, and a count of visits to the others."""

    def __init__(self) -> None:
        self.port = 0
        self.pages: dict[str, str] = {}
        self.heads: list[str] = []
        self.forbidden = 0

    def url(self, path: str) -> str:
        return f"http://{SITE}:{self.port}{path}"

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if writer.get_extra_info("sockname")[0] != SITE:
            self.forbidden += 1
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            self.heads.append(head)
            page = self.pages.get(head.split(" ")[1], "")
            writer.write(
                b"HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\n"
                b"Connection: close\r\n\r\n" + page.encode()
            )
            await writer.drain()
        except (OSError, EOFError):
            pass
        finally:
            writer.close()


@pytest.fixture
async def web() -> AsyncIterator[Web]:
    site = Web()
    server = await asyncio.start_server(site.serve, "0.0.0.0", 0)  # noqa: S104
    site.port = server.sockets[0].getsockname()[1]
    six = await asyncio.start_server(site.serve, "::1", site.port)
    yield site
    server.close()
    six.close()


@pytest.fixture
def networks() -> list[str]:
    return [f"{SITE}/32"]


@pytest.fixture
async def browser(web: Web, networks: Any) -> AsyncIterator[Browser]:
    settings = ReadingSettings(allowed_networks=networks, browser_seconds=60)
    guard = Guard(networks, [web.port])
    opened = Browser(settings, guard)
    yield opened
    await opened.close()
    guard.close()


@needs_browser
async def test_a_page_made_by_scripts_its_design_and_a_picture(web: Web, browser: Browser) -> None:
    source = (PAGES / "scripted.html").read_text(encoding="utf-8")
    style = "<style>body{background:#123456;color:#ffffff;font-family:Georgia}</style></head>"
    web.pages["/"] = source.replace("</head>", style)
    seen = await browser.visit(web.url("/"), picture=True)
    text = read_html(seen.html, seen.url).text
    for section in ("safe mode since Tuesday", "Power", "lowest one will burn", "painted"):
        assert section in text
    assert "Sign in" not in text
    assert "background #123456" in seen.design
    assert "Georgia" in seen.design
    assert seen.picture.startswith(b"\x89PNG")
    assert struct.unpack(">II", seen.picture[16:24]) == (1280, 800)


@needs_browser
@pytest.mark.parametrize("networks", [[f"{SITE}/32"], ["127.0.0.0/8", "::1/128"]])
async def test_a_page_leads_the_browser_to_nothing_that_is_forbidden(
    web: Web, browser: Browser, networks: list[str]
) -> None:
    bad = [f"127.0.0.1:{web.port}", f"localhost:{web.port}", f"[::1]:{web.port}"]
    tries = "".join(
        f"""<img src="http://{host}/img"><iframe src="http://{host}/frame"></iframe>
        <link rel="prefetch" href="http://{host}/prefetch"><link rel="preconnect" href="http://{host}">
        <link rel="stylesheet" href="http://{host}/css"><script src="http://{host}/js"></script>
        <object data="http://{host}/object"></object><video src="http://{host}/video"></video>
        <script>
          fetch("http://{host}/fetch", {{mode: "no-cors"}}).catch(() => 0);
          navigator.sendBeacon("http://{host}/beacon", "x");
          try {{ new WebSocket("ws://{host}/socket") }} catch {{}}
          new EventSource("http://{host}/events");
          try {{ new Worker(URL.createObjectURL(new Blob([
            `fetch("http://{host}/worker", {{mode: "no-cors"}})`]))) }} catch {{}}
          window.open("http://{host}/window");
        </script>"""
        for host in bad
    )
    web.pages["/"] = f"""<h1>Here</h1>{tries}<script>
      fetch("file:///etc/hostname").catch(() => 0);
      const peer = new RTCPeerConnection({{iceServers: [{{urls: "stun:127.0.0.1:{web.port}"}},
        {{urls: "turn:127.0.0.1:{web.port}?transport=tcp", username: "u", credential: "c"}}]}});
      peer.createDataChannel("x"); peer.createOffer().then(o => peer.setLocalDescription(o));
    </script><p id="late"></p><script>
      setTimeout(() => document.getElementById("late").textContent = "done", 700)</script>"""
    datagrams = 0

    class Udp(asyncio.DatagramProtocol):
        def datagram_received(self, data: bytes, addr: Any) -> None:
            nonlocal datagrams
            datagrams += 1

    loop = asyncio.get_running_loop()
    udp, _ = await loop.create_datagram_endpoint(Udp, ("127.0.0.1", web.port))
    seen = await browser.visit(web.url("/"))
    udp.close()
    assert "done" in seen.html
    assert datagrams == 0
    assert (web.forbidden == 0) is (networks == [f"{SITE}/32"])


@needs_browser
async def test_a_page_that_moves_on_to_forbidden_ground(web: Web, browser: Browser) -> None:
    target = f"http://127.0.0.1:{web.port}/secret"
    for page in (
        f"<p>x</p><script>location = '{target}'</script>",
        f"<meta http-equiv=refresh content='0;url={target}'><p>x</p>",
        f"<form action='{target}' method=post></form><script>document.forms[0].submit()</script>",
    ):
        web.pages["/"] = page
        with contextlib.suppress(Unseen):
            assert "secret" not in (await browser.visit(web.url("/"))).url
    assert web.forbidden == 0


@needs_browser
async def test_visits_share_nothing(web: Web, browser: Browser) -> None:
    web.pages["/"] = """<p id=x></p><script>
      x.textContent = document.cookie + "|" + localStorage.getItem("k");
      document.cookie = "k=v"; localStorage.setItem("k", "v");</script>"""
    for _ in range(2):
        seen = await browser.visit(web.url("/"))
        assert ">|null</p>" in seen.html


@needs_browser
async def test_a_page_that_never_stops_costs_its_time_only(web: Web, browser: Browser) -> None:
    web.pages["/"] = "<h1>x</h1><script>setTimeout(() => {while (true) {}}, 0)</script>"
    web.pages["/next"] = "<h1>fine</h1>"
    browser._settings = browser._settings.model_copy(update={"browser_seconds": 6.0})
    with pytest.raises(Unseen, match="took too long"):
        await browser.visit(web.url("/"))
    browser._settings = browser._settings.model_copy(update={"browser_seconds": 60.0})
    assert "fine" in (await browser.visit(web.url("/next"))).html


@needs_browser
async def test_it_is_gone_when_closed_and_when_idle(web: Web, browser: Browser) -> None:
    web.pages["/"] = "<h1>x</h1>"
    browser._settings = browser._settings.model_copy(update={"browser_idle_seconds": 0.2})
    await browser.visit(web.url("/"))
    async with asyncio.timeout(20):
        while _chromiums():
            await asyncio.sleep(0.05)
    await browser.visit(web.url("/"))
    await browser.close()
    assert not _chromiums()


def _chromiums() -> list[psutil.Process]:
    children = psutil.Process().children(recursive=True)
    return [
        p for p in children if p.is_running() and "chrom" in p.name() and p.status() != "zombie"
    ]


@pytest.mark.parametrize("url", ["http://127.0.0.1/", "file:///etc/passwd", "about:blank"])
async def test_addresses_that_are_refused_start_nothing(browser: Browser, url: str) -> None:
    if browser.problem is None:
        with pytest.raises(Unseen):
            await browser.visit(url)
    assert browser._launch is None


async def test_a_browser_that_is_missing_says_so(tmp_path: Path) -> None:
    settings = ReadingSettings(browser_path=tmp_path / "nothing")
    guard = Guard()
    browser = Browser(settings, guard)
    assert browser.problem is not None
    with pytest.raises(Unseen):
        await browser.visit("http://example.com/")
    assert Browser(ReadingSettings(browser=False), guard).problem == "the browser is switched off"
    guard.close()
