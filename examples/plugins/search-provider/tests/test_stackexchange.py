"""The provider behind web search, against an interface of the same shape on loopback."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from hookline.testing import LocalServer, PluginContractTests
from hookline_stackexchange import StackExchange

PAGE = """<html><head><title>Pinning a wheel</title></head><body><article><h1>Pinning a wheel</h1>
<p>How do I pin a wheel so that it stays where it is while the belt is being changed?</p>
<p>Put the locking bolt through the second hole of the hub and tighten it by hand only.</p>
</article></body></html>"""


class Site(BaseHTTPRequestHandler):
    """The interface, and the one page it knows."""

    asked: list[dict[str, list[str]]]

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        if parts.path == "/2.3/search/advanced":
            self.asked.append(parse_qs(parts.query))
            self._send("application/json", json.dumps(self._answer()))
        elif parts.path == "/questions/1":
            self._send("text/html; charset=utf-8", PAGE)
        else:
            self.send_error(404)

    def _answer(self) -> dict[str, Any]:
        if self.asked[-1]["q"] == ["too fast"]:
            return {"error_id": 502, "error_message": "too many requests from this IP"}
        question = {
            "link": f"http://{self.headers['Host']}/questions/1",
            "title": "Pinning a wheel &amp; its belt",
            "creation_date": 1_700_000_000,
            "answer_count": 2,
            "tags": ["wheels"],
        }
        return {"items": [question]}

    def _send(self, kind: str, text: str) -> None:
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, *args: Any) -> None:
        """Says nothing."""


@pytest.fixture
def site() -> Iterator[ThreadingHTTPServer]:
    Site.asked = []
    with ThreadingHTTPServer(("127.0.0.1", 0), Site) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture
def searching(server: LocalServer, site: ThreadingHTTPServer) -> LocalServer:
    port = site.server_address[1]
    server.use(
        "websearch",
        providers=["stackexchange"],
        allowed_networks=["127.0.0.0/8"],
        allowed_ports=[port],
        cache_seconds=0,
        quick={"queries": 1, "pages": 3, "seconds": 60, "tokens": 1200},  # not a matter of speed
    )
    server.use(StackExchange, url=f"http://127.0.0.1:{port}/2.3")
    return server


def test_sources_without_an_answer(searching: LocalServer) -> None:
    body = {"query": "how to pin a wheel", "depth": "quick"}
    found = searching.client.post("/v1/web_search", json=body).json()
    (source,) = found["sources"]
    assert source["title"].startswith("Pinning a wheel")
    assert "second hole of the hub" in source["snippet"]
    assert Site.asked[0]["site"] == ["stackoverflow"]


def test_an_answer_with_sources(searching: LocalServer, chat: Callable[..., Any]) -> None:
    answer = chat("How do I pin a wheel?", web_search="quick")
    assert answer.body["sources"][0]["type"] == "web"
    assert "locking bolt" in searching.prompts[-1]


def test_its_refusals_are_told(searching: LocalServer) -> None:
    body = {"query": "too fast", "depth": "quick"}
    found = searching.client.post("/v1/web_search", json=body).json()
    assert "too many requests from this IP" in found["web_search"]["note"]


class TestContract(PluginContractTests):
    plugin = StackExchange
    extra_plugins = ("websearch",)
    heavy_imports = ("lxml", "numpy")
