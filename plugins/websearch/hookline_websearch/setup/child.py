"""SearXNG as a child of the server: started with it, watched, and ended with it."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import shlex
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import httpx

from hookline_websearch.setup import keeper

log = logging.getLogger(__name__)

START_SECONDS = 60.0
CHECK_SECONDS = 0.25
LONGEST_PAUSE = 60.0
STEADY_SECONDS = 60.0
"""After so long a run the next restart is at once again."""


class Child:
    """Keeps a command running whose health is at ``url`` + ``/healthz``.

    ``log_file`` gets what the command prints.
    """

    def __init__(self, command: str, url: str, client: httpx.AsyncClient, log_file: Path) -> None:
        self._command = shlex.split(command)
        self._health = url.rstrip("/") + "/healthz"
        self._client = client
        self._log_file = log_file
        self.ready = asyncio.Event()

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Starts the command and starts it again when it ends; ends it in the end."""
        watching = asyncio.create_task(self._watch())
        try:
            yield
        finally:
            watching.cancel()
            await asyncio.wait([watching])

    async def _watch(self) -> None:
        if await self._answers():
            log.info("SearXNG answers already; searxng_command is not started")
            self.ready.set()
            return
        pause = 1.0
        while True:
            begin = asyncio.get_running_loop().time()
            try:
                await self._run()
            except OSError as error:
                log.error("searxng_command cannot be started: %s", error)
            self.ready.clear()
            if asyncio.get_running_loop().time() - begin > STEADY_SECONDS:
                pause = 1.0
            await asyncio.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE)

    async def _run(self) -> None:
        """Runs the command once, to its end."""
        self._log_file.parent.mkdir(parents=True, exist_ok=True)
        with self._log_file.open("wb") as output:
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, keeper.__file__, *self._command),
                stdin=asyncio.subprocess.PIPE,
                stdout=output,
                stderr=output,
            )
        try:
            if await self._becomes_ready(process):
                log.info("SearXNG runs")
                self.ready.set()
                await process.wait()
            log.error("SearXNG has ended or never answered; see %s", self._log_file)
        finally:
            await _end(process)

    async def _becomes_ready(self, process: asyncio.subprocess.Process) -> bool:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(START_SECONDS):
                while process.returncode is None:
                    if await self._answers():
                        return True
                    await asyncio.sleep(CHECK_SECONDS)
        return False

    async def _answers(self) -> bool:
        try:
            response = await self._client.get(self._health, timeout=2)
        except httpx.HTTPError:
            return False
        return response.status_code == 200


async def _end(process: asyncio.subprocess.Process) -> None:
    """Closes the pipe that keeps the command running, and waits for its end."""
    if process.stdin is not None:
        process.stdin.close()
    try:
        async with asyncio.timeout(keeper.GRACE_SECONDS + 2):
            await process.wait()
    except TimeoutError:
        process.kill()
        await process.wait()
