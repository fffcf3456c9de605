"""``hookline serve``: runs the server until it is told to stop."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import socket
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import click
from hypercorn.asyncio import serve as hypercorn_serve
from hypercorn.config import Config
from rich.console import Console
from rich.logging import RichHandler
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn
from rich.text import Text

from hookline.app import app_of
from hookline.auth import key_required
from hookline.cli import COMMANDS, loaded_settings
from hookline.cli.added import add_commands
from hookline.config import Settings
from hookline.errors import StartError
from hookline.kernel import Kernel

log = logging.getLogger(__name__)

UNLOAD_SECONDS = 5.0
"""How long the cut-off answers may take to reach their clients."""


@click.command()
@click.option("--config", type=click.Path(path_type=Path), metavar="FILE", help="Configuration.")
@click.option("--host", help="Address to listen on.")
@click.option("--port", type=int, help="Port to listen on; 0 picks a free one.")
@click.option("--model", help="The model: a configured id, a path, or owner/repo[:file].")
@click.pass_context
def serve(
    ctx: click.Context, config: Path | None, host: str | None, port: int | None, model: str | None
) -> None:
    """Runs the server.

    The first SIGTERM or Ctrl-C takes nothing new and lets running requests finish; a second one
    ends at once. The exit code is 130 after Ctrl-C, and 0 after SIGTERM.
    """
    flags = {"server.host": host, "server.port": port, "model.source": model}
    settings = loaded_settings(ctx, flags, config).settings
    console = Console(stderr=True)
    configure_logging(settings, console)
    kernel = Kernel(settings)
    for name, problem in add_commands(kernel.plugins, click.Group(), COMMANDS).items():
        log.warning("plugin %s: %s", name, problem)
    listener = listen(settings)
    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        stopped_by = runner.run(run(kernel, listener, console))
        code = 128 + stopped_by if stopped_by == signal.SIGINT else 0
        if not kernel.loaded.done():
            _leave(code)
    ctx.exit(code)


def _leave(code: int) -> None:
    """Ends the process at once: Python would wait for the thread that still fetches or reads the
    model, which nothing can interrupt."""
    logging.shutdown()
    os._exit(code)


class Stop(asyncio.Event):
    """Set when the server is to end; ``by`` is the signal that wants it."""

    by: int | None = None


def configure_logging(settings: Settings, console: Console) -> None:
    """Logs to stderr, in colour on a terminal."""
    handler: logging.Handler
    if console.is_terminal:
        handler = RichHandler(console=console, show_path=False, rich_tracebacks=True)
        form = "%(message)s"
    else:
        handler = logging.StreamHandler(sys.stderr)
        form = "%(asctime)s %(levelname)s %(name)s: %(message)s"
    logging.basicConfig(level=settings.log_level.upper(), handlers=[handler], format=form)
    logging.getLogger("hypercorn").setLevel(logging.WARNING)
    logging.getLogger("httpx").setLevel(logging.WARNING)


def loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """uvloop's, where it is installed: half the cost a chunk."""
    try:
        import uvloop
    except ImportError:
        return None
    return uvloop.new_event_loop


def listen(settings: Settings) -> socket.socket:
    """The listening socket, opened before the model is loaded. Raises StartError."""
    host, port = settings.server.host, settings.server.port
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listener = socket.socket(family, kind, protocol)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
    except OSError as error:
        raise StartError(
            f"Cannot listen on {host} port {port}: {error.strerror or error}. "
            "Choose another with --port or [server] port."
        ) from error
    return listener


async def run(kernel: Kernel, listener: socket.socket, console: Console) -> int | None:
    """Serves until told to stop; gives the signal that said so. Raises StartError when the model
    cannot be loaded."""
    stop = Stop()
    _on_signals(kernel, stop)
    url = address(listener)
    log.info("starting at %s, with the model %s", url, kernel.model_id)
    async with kernel.running():
        config = _hypercorn_config(listener.detach())
        serving = asyncio.create_task(
            hypercorn_serve(app_of(kernel), config, shutdown_trigger=stop.wait)
        )
        stopping = asyncio.create_task(stop.wait())
        try:
            await _show_loading(kernel, console, stopping)
            if not stop.is_set():
                _show_ready(kernel, url, console)
            await asyncio.wait([serving, stopping], return_when=asyncio.FIRST_COMPLETED)
        finally:
            stop.set()
            stopping.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await serving
    return stop.by


def _hypercorn_config(listener: int) -> Config:
    """Hypercorn takes the listening socket's descriptor over, and closes it."""
    config = Config()
    config.bind = [f"fd://{listener}"]
    config.graceful_timeout = 1.0
    config.include_server_header = False
    config.accesslog = None
    config.errorlog = logging.getLogger("hypercorn")
    return config


def _on_signals(kernel: Kernel, stop: Stop) -> None:
    """Handlers of the process, not of the loop: the second signal must end it also where something
    blocks the loop."""
    loop = asyncio.get_running_loop()
    tasks: set[asyncio.Task[None]] = set()

    def begin() -> None:
        tasks.add(asyncio.ensure_future(_drain(kernel, stop)))

    def on_signal(number: int, _frame: FrameType | None) -> None:
        if kernel.stopping:
            os._exit(128 + number)
        kernel.stopping, stop.by = True, number
        loop.call_soon_threadsafe(begin)

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, on_signal)


async def _drain(kernel: Kernel, stop: asyncio.Event) -> None:
    """Lets running requests finish; those that take too long end as ``cancelled``."""
    grace = kernel.settings.server.grace_seconds
    what = f": what runs ({kernel.in_flight}) may finish within {grace:g} s"
    log.info("stopping%s; a second signal ends at once", what if kernel.in_flight else "")
    try:
        async with asyncio.timeout(grace):
            await kernel.drain()
    except TimeoutError:
        log.warning("stopping: what did not finish (%d) is cut off", kernel.in_flight)
        await kernel.stop_engine()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(UNLOAD_SECONDS):
                await kernel.drain()
    stop.set()


async def _show_loading(kernel: Kernel, console: Console, stopping: asyncio.Task[bool]) -> None:
    """A progress bar while the model is loaded. Raises what loading failed with."""
    waits: list[asyncio.Future[Any]] = [kernel.loaded, stopping]
    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn())
    bar = Progress(*columns, console=console, transient=True)
    task = bar.add_task(f"Loading {kernel.model_id}", total=1.0)
    try:
        while not (kernel.loaded.done() or stopping.done()):
            await asyncio.wait(waits, timeout=0.1, return_when=asyncio.FIRST_COMPLETED)
            if kernel.progress:  # before that a download may show a bar of its own
                bar.start()
            bar.update(task, completed=kernel.progress)
    finally:
        bar.stop()
    if kernel.loaded.done():
        kernel.loaded.result()


def _show_ready(kernel: Kernel, url: str, console: Console) -> None:
    card = kernel.engine.card
    console.print(f"[bold green]Hookline[/] is ready at [bold]{url}/v1[/]", highlight=False)
    exact = "exact batches" if card.exact_batches else "fast batches"
    console.print(
        f"  model    {card.id} ({card.engine}, {card.context} tokens a request, "
        f"{card.parallel} at once, {exact})",
        highlight=False,
        soft_wrap=True,
    )
    active = ", ".join(plugin.name for plugin in kernel.plugins.active() if not plugin.core)
    console.print(Text(f"  plugins  {active or 'none'}"), soft_wrap=True)
    for plugin in kernel.plugins.found.values():
        if plugin.state == "failed":
            line = Text(f"           {plugin.name} is off: {plugin.reason}", style="red")
            console.print(line, soft_wrap=True)
    key = ' -H "Authorization: Bearer $HOOKLINE_KEY"' if key_required(kernel.settings) else ""
    console.print(
        f"  try      curl {url}/v1/chat/completions{key} -H 'Content-Type: application/json' "
        """-d '{"messages": [{"role": "user", "content": "Hello!"}]}'""",
        highlight=False,
        markup=False,
        soft_wrap=True,
    )


def address(listener: socket.socket) -> str:
    """The URL of a listening socket, as a person on this machine would type it."""
    host, port = listener.getsockname()[:2]
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
