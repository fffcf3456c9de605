"""Reading the text in images in a process of its own, within limits of time and memory."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from hookline.images import Image

WORKER = ("-m", "hookline.media.ocr_worker")

STARTING = 100.0
"""Seconds that the process has to load its models, on a machine that is busy."""

IDLE = 300.0
"""Seconds without an image after which the process ends."""

MIB = 2**20


class ReaderBroke(Exception):
    """The process ended by itself, most likely for want of memory, or does not start."""


@dataclass(slots=True)
class TextRead:
    """What was read of an image: the texts of its first lines, and how many ``lines`` it has; None
    where there was no time to find that out. A line that cannot be read is empty."""

    texts: list[str] = field(default_factory=list)
    lines: int | None = None

    @property
    def complete(self) -> bool:
        """Whether every line was read."""
        return len(self.texts) == self.lines

    @property
    def text(self) -> str:
        """The lines that say something."""
        return "\n".join(filter(None, self.texts))


class TextProcess:
    """Reads images one after the other, in the order of the calls. One event loop only.

    The process starts with the first image and ends when there were none for ``idle`` seconds.
    """

    def __init__(self, memory_mb: int, idle: float = IDLE) -> None:
        self._memory = memory_mb * MIB
        self._idle = idle
        self._turn = asyncio.Lock()
        self._process: Process | None = None
        self._ending: asyncio.Task[None] | None = None

    async def read(self, image: Image, seconds: float) -> TextRead:
        """As much text as can be read in so many seconds, those for starting not counted.

        Where time runs out, and where the call is cancelled, the process is killed. Raises
        ReaderBroke.
        """
        async with self._turn, self._running() as process:
            read = TextRead()
            try:
                async with asyncio.timeout(seconds):
                    await _exchange(process, image, read)
            except TimeoutError:
                pass
            except (OSError, EOFError, ValueError) as error:
                raise ReaderBroke("the process that reads images has ended") from error
            if read.complete:
                self._process = process
            return read

    async def close(self) -> None:
        """Ends the process, if it is not at work."""
        if self._ending is not None:
            self._ending.cancel()
        if self._process is not None:
            process, self._process = self._process, None
            await _stop(process)

    @asynccontextmanager
    async def _running(self) -> AsyncIterator[Process]:
        """The process; afterwards it is killed, unless it has been put back."""
        if self._ending is not None:
            self._ending.cancel()
        process, self._process = self._process, None
        if process is None or process.returncode is not None:
            process = await _start(self._memory)
        try:
            yield process
        finally:
            if self._process is None:
                await _stop(process)
            else:
                self._ending = asyncio.create_task(self._end_when_idle())

    async def _end_when_idle(self) -> None:
        await asyncio.sleep(self._idle)
        async with self._turn:
            self._ending = None
            await self.close()


async def _start(memory: int) -> Process:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, *WORKER, str(memory)),
        stdin=PIPE,
        stdout=PIPE,
        stderr=DEVNULL,
        env={**os.environ, "OMP_NUM_THREADS": "1", "MALLOC_ARENA_MAX": "2"},
    )
    try:
        async with asyncio.timeout(STARTING):
            await _next(process)
    except BaseException as error:
        await _stop(process)
        if isinstance(error, TimeoutError | OSError | EOFError | ValueError):
            raise ReaderBroke("the process that reads images does not start") from error
        raise
    return process


async def _exchange(process: Process, image: Image, read: TextRead) -> None:
    """Fills ``read`` as the lines come, see `hookline.media.ocr_worker`."""
    if process.stdin is None:
        raise EOFError
    size = {"width": image.width, "height": image.height}
    process.stdin.write(json.dumps(size).encode() + b"\n" + image.rgb)
    await process.stdin.drain()
    read.lines = (await _next(process))["lines"]
    while not read.complete:
        read.texts.append((await _next(process))["text"])


async def _next(process: Process) -> dict[str, Any]:
    if process.stdout is None or not (line := await process.stdout.readline()):
        raise EOFError
    message: dict[str, Any] = json.loads(line)
    return message


async def _stop(process: Process) -> None:
    with contextlib.suppress(ProcessLookupError):
        process.kill()
    if process.stdin is not None:
        process.stdin.close()
    await process.wait()
