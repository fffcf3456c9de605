"""Reads files of any kind, in processes of their own that are given up when a file is too much."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import signal
import sys
from pathlib import Path
from typing import Any

from hookline import Document, Section
from hookline_knowledge.parsing.frames import pack, receive_message
from hookline_knowledge.parsing.kinds import file_name
from hookline_knowledge.parsing.settings import MIB, ParsingSettings
from hookline_knowledge.parsing.unreadable import Unreadable, broke, too_large, too_slow

WRITE = 2**18
"""Bytes of a file that are sent at once."""

BUFFER = 2**20
"""Bytes that wait to be read from a process."""

DYING = 5.0
"""Seconds in which it becomes known how a process ended."""

STARTING = 60.0
"""Seconds that a process has to come up, on a machine that is busy."""

KEPT = re.compile(r"PATH|HOME|TMPDIR|LANG|LC_.*|TZ|PYTHON.*|VIRTUAL_ENV|LD_LIBRARY_PATH")
"""What the processes get of the environment. Keys and passwords are no business of theirs: a file
may be made to take its reader over."""

SINGLE_THREADED = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MALLOC_ARENA_MAX": "2",
}
"""Environment of the processes: files are read side by side, not each on all cores."""


class Parser:
    """Makes documents of files. One event loop only.

    Processes start when they are needed, and stay for the next file. ``spare`` may work beyond
    those of the settings.
    """

    def __init__(self, settings: ParsingSettings, *, spare: int = 0) -> None:
        self._limits = settings
        self._free: list[asyncio.subprocess.Process] = []
        self._places = asyncio.Semaphore(settings.workers + spare)

    async def parse(self, data: bytes | Path, name: str, media_type: str | None = None) -> Document:
        """A file, as bytes or by its path, as a document. Raises Unreadable with the reason.

        ``name`` and ``media_type`` are what its sender says of it. Cancelling ends the process
        that reads it.
        """
        if isinstance(data, bytes) and len(data) > self._limits.file_mb * MIB:
            raise Unreadable(too_large(self._limits))
        async with self._places:
            process = self._idle() or await self._start()
            conversation = Conversation(process, self._limits)
            try:
                answer = await conversation.ask(data, name, media_type)
                if not answer["spent"]:
                    self._free.append(process)
            finally:
                if process not in self._free:
                    await _stop(process)
        if "unreadable" in answer:
            raise Unreadable(answer["unreadable"], answer["code"])
        return Document(
            title=answer["title"] or file_name(name).stem,
            sections=tuple(conversation.sections),
            media_type=answer["media_type"],
            notes=tuple(answer["notes"]),
        )

    def _idle(self) -> asyncio.subprocess.Process | None:
        """A process that waits, and still lives."""
        while self._free:
            process = self._free.pop()
            if process.returncode is None and not _output(process).at_eof():
                return process
        return None

    async def close(self) -> None:
        """Ends the processes that wait for files."""
        while self._free:
            await _stop(self._free.pop())

    async def _start(self) -> asyncio.subprocess.Process:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "hookline_knowledge.parsing.worker"),
            self._limits.model_dump_json(),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            limit=BUFFER,
            env=_environment(),
        )
        try:
            async with asyncio.timeout(STARTING):
                await receive_message(_output(process))
        except BaseException:
            await _stop(process)
            raise
        return process


class Conversation:
    """One file on its way through a process; ``sections`` are those that have come back."""

    def __init__(self, process: asyncio.subprocess.Process, limits: ParsingSettings) -> None:
        self._process = process
        self._limits = limits
        self._parts: list[str] = []
        self.sections: list[Section] = []

    async def ask(self, data: bytes | Path, name: str, media_type: str | None) -> dict[str, Any]:
        """The last message about a file. Raises Unreadable when the process breaks or takes too
        long."""
        try:
            async with asyncio.timeout(self._limits.seconds) as deadline:
                await self._send(data, name, media_type)
                while not self._is_last(message := await self._next()):
                    self._take(message, deadline)
        except TimeoutError as error:
            raise Unreadable(too_slow(self._limits)) from error
        except (asyncio.IncompleteReadError, ConnectionError) as error:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(DYING):
                    await self._process.wait()
            raise Unreadable(broke(self._limits, _how(self._process))) from error
        return message

    async def _send(self, data: bytes | Path, name: str, media_type: str | None) -> None:
        body = data if isinstance(data, bytes) else b""
        path = None if isinstance(data, bytes) else str(data)
        about = {"name": name, "media_type": media_type, "path": path, "size": len(body)}
        pipe = self._process.stdin
        if pipe is None:
            raise ConnectionError("the process has no pipes")
        pipe.write(pack(about))
        for begin in range(0, len(body), WRITE):
            pipe.write(body[begin : begin + WRITE])
            await pipe.drain()

    async def _next(self) -> dict[str, Any]:
        return await receive_message(_output(self._process))

    @staticmethod
    def _is_last(message: dict[str, Any]) -> bool:
        return "read" in message or "unreadable" in message

    def _take(self, message: dict[str, Any], deadline: asyncio.Timeout) -> None:
        if "text" in message:
            self._parts.append(message["text"])
        elif "place" in message:
            self.sections.append(Section("".join(self._parts), message["place"]))
            self._parts.clear()
        elif (until := deadline.when()) is not None:
            deadline.reschedule(until + self._limits.ocr_seconds)


def _environment() -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if KEPT.fullmatch(name)}
    return {**kept, **SINGLE_THREADED}


def _output(process: asyncio.subprocess.Process) -> asyncio.StreamReader:
    if process.stdout is None:
        raise ConnectionError("the process has no pipes")
    return process.stdout


def _how(process: asyncio.subprocess.Process) -> str:
    """By which signal a process ended."""
    code = process.returncode
    return f" ({signal.Signals(-code).name})" if code is not None and code < 0 else ""


async def _stop(process: asyncio.subprocess.Process) -> None:
    with contextlib.suppress(ProcessLookupError):
        process.kill()
    if process.stdin is not None:
        process.stdin.close()
    await process.wait()
