"""What the running server says: asked only where it is one of ours."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from hookline.cli.running import running_server
from hookline.config import Settings


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
