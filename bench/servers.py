"""Starts servers to measure, and takes them down again."""

from __future__ import annotations

import os
import shlex
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx

START_SECONDS = 120


@dataclass(frozen=True)
class Target:
    """A server by its base URL, which ends with ``/v1``; ``pid`` where it was started here."""

    name: str
    url: str
    pid: int | None = None

    @property
    def root(self) -> str:
        """The URL without ``/v1``."""
        return self.url.removesuffix("/v1")


@dataclass(frozen=True)
class Shape:
    """How every server is set up: the model file, tokens of context, sequences, threads.

    ``llama_server`` is the command of llama.cpp's server, with flags besides those for the above;
    ``mmproj`` is an image projector, for Hookline.
    """

    model: Path
    context: int
    parallel: int
    threads: int
    llama_server: str = "llama-server"
    mmproj: Path | None = None


def hookline(shape: Shape, port: int) -> tuple[Sequence[str], Mapping[str, str]]:
    """Command and environment of Hookline."""
    images = {"HOOKLINE_MODEL__MMPROJ": str(shape.mmproj)} if shape.mmproj else {}
    return [sys.executable, "-m", "hookline", "serve", "--port", str(port)], {
        "HOOKLINE_MODEL__SOURCE": str(shape.model),
        "HOOKLINE_MODEL__CONTEXT": str(shape.context),
        "HOOKLINE_MODEL__PARALLEL": str(shape.parallel),
        "HOOKLINE_MODEL__THREADS": str(shape.threads),
        "HOOKLINE_SERVER__MAX_QUEUE": "64",
        "HOOKLINE_LOG_LEVEL": "warning",
        **images,
    }


def llama_cpp_python(shape: Shape, port: int) -> tuple[Sequence[str], Mapping[str, str]]:
    """Command and environment of llama-cpp-python's own server, which answers one at a time."""
    options = {
        "model": shape.model,
        "port": port,
        "n_ctx": shape.context,
        "n_threads": shape.threads,
        "n_threads_batch": shape.threads,
        "interrupt_requests": "false",  # else a second request ends the first one's stream
    }
    flags = [text for name, value in options.items() for text in (f"--{name}", str(value))]
    return [sys.executable, "-m", "llama_cpp.server", *flags], {}


def llama_server(shape: Shape, port: int) -> tuple[Sequence[str], Mapping[str, str]]:
    """Command and environment of llama.cpp's server, which divides its context by its slots."""
    options = {
        "model": shape.model,
        "port": port,
        "ctx-size": shape.context * shape.parallel,
        "parallel": shape.parallel,
        "threads": shape.threads,
    }
    flags = [text for name, value in options.items() for text in (f"--{name}", str(value))]
    return [*shlex.split(shape.llama_server), *flags], {}


KNOWN = {
    "hookline": hookline,
    "llama-cpp-python": llama_cpp_python,
    "llama-server": llama_server,
}


@contextmanager
def serving(name: str, shape: Shape) -> Iterator[Target]:
    """A server on a free port of loopback, ready to answer. Raises RuntimeError with its output
    where it does not come up."""
    port = free_port()
    command, variables = KNOWN[name](shape, port)
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryFile() as output:
        process = subprocess.Popen(
            command,
            env={**os.environ, **variables, "HOOKLINE_DATA_DIR": folder},
            cwd=folder,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
        try:
            target = Target(name, f"http://127.0.0.1:{port}/v1", process.pid)
            if not _comes_up(target, process):
                output.seek(0)
                raise RuntimeError(f"{name} did not start:\n{output.read().decode()}")
            yield target
        finally:
            process.terminate()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _comes_up(target: Target, process: subprocess.Popen[bytes]) -> bool:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        try:
            health = httpx.get(f"{target.root}/health")
            models = httpx.get(f"{target.url}/models")
        except httpx.TransportError:
            time.sleep(0.2)
            continue
        if health.status_code in (200, 404) and models.status_code == 200:
            return True
        time.sleep(0.2)
    return False


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port
