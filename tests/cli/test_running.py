"""What the running server says: asked only where it is one of ours."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest
from click.testing import Result

from hookline.cli.running import running_server
from hookline.config import Settings

Run = Callable[..., Result]


@contextmanager
def answering(body: bytes) -> Iterator[Settings]:
    """A server that answers everything with this body; settings with its port."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(503)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None: ...

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield Settings(server={"port": server.server_port, "host": "0.0.0.0"})  # noqa: S104
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_its_plugins_are_told_also_while_no_model_is_loaded() -> None:
    body = {"plugins": [{"name": "weather", "state": "failed"}]}
    with answering(json.dumps(body).encode()) as settings:
        running = running_server(settings)
    assert running is not None
    assert running.url == f"http://127.0.0.1:{settings.server.port}"
    assert running.plugins["weather"]["state"] == "failed"


@pytest.mark.parametrize(
    "body",
    [b"<html>", b"[]", b'{"status": "ok"}', b'{"plugins": [3]}', b'{"plugins": null}', b"\xff"],
)
def test_another_kind_of_server_is_none(body: bytes) -> None:
    with answering(body) as settings:
        assert running_server(settings) is None


def test_nobody_is_none(unused_tcp_port_factory: Callable[[], int]) -> None:
    assert running_server(Settings(server={"port": unused_tcp_port_factory()})) is None


def test_one_that_does_not_answer_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hookline.cli.running.PATIENCE", 0.05)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        running = running_server(Settings(server={"port": silent.getsockname()[1]}))
    assert running is not None
    assert not running.answers


HEALTH = b'{"plugins": [{"name": "tools", "state": "failed", "reason": "it rains"}]}'


@pytest.mark.parametrize("end", ["", "/", "/v1", "/v1/"])
def test_a_command_asks_the_server_that_is_named(run: Run, end: str) -> None:
    with answering(HEALTH) as settings:
        url = f"http://127.0.0.1:{settings.server.port}"
        result = run("plugins", "list", "--url", url + end)
        about = json.loads(run("plugins", "info", "tools", "--json", "--url", url).stdout)
        doctor = run("plugins", "doctor", "--url", url)
    rows = {row[0]: row[1:4] for row in (line.split("\t") for line in result.stdout.splitlines())}
    assert rows["tools"][::2] == ["failed", "it rains"]
    unknown = f"the server at {url} does not know it: restart that"
    assert rows["vision"][::2] == ["off", unknown]
    assert f"States are those of the server at {url}." in result.stderr
    assert (about["state"], about["reason"]) == ("failed", "it rains")
    assert f"ok\tserver\tat {url}\n" in doctor.stdout


@pytest.mark.parametrize("url", ["http://127.0.0.1:1", "localhost:1234", "ftp://x", "http://[", ""])
def test_a_server_that_is_named_must_answer(run: Run, url: str) -> None:
    result = run("plugins", "list", "--url", url)
    assert result.exit_code == 1
    assert result.stdout == ""
    assert result.stderr.startswith(f"Error: No server of Hookline answers at {url}")
