"""The processes that read pages, as the server sees them."""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
from typing import Any

from hookline_websearch.content.result import Content

LINE_MAX = 64 * 2**20
"""Bytes of an answer."""

START_SECONDS = 30.0


class TooHard(Exception):
    """The page took too long, too much memory, or broke the reading."""


class ReadingPool:
    """So many processes at most, kept while the server runs. One event loop only."""

    def __init__(self, processes: int, seconds: float) -> None:
        self._processes = processes
        self._seconds = seconds
        self._free: list[asyncio.subprocess.Process] = []
        self._places = asyncio.Semaphore(processes)
        self._warming: asyncio.Task[None] | None = None
        self._working: set[asyncio.Task[dict[str, Any]]] = set()

    def warm_up(self) -> None:
        """Begins to start the processes, so that the first pages need not wait for them."""
        self._warming = asyncio.create_task(self._warm())

    async def read(
        self, body: bytes, media_type: str, charset: str, url: str, most: int
    ) -> Content:
        """Reads a page in a process: up to ``most`` characters of it.

        Raises TooHard. A process that does not answer in time is killed; one whose answer nobody
        waits for any more finishes it, since another one would take seconds to start.
        """
        request = {"media_type": media_type, "charset": charset, "url": url, "most": most}
        answer = await self._ask({**request, "size": len(body)}, body)
        if "failed" in answer:
            raise TooHard(answer["failed"])
        return Content(**answer)

    async def close(self) -> None:
        """Stops all processes."""
        tasks = [*self._working, *filter(None, [self._warming])]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        while self._free:
            await _stop(self._free.pop())

    async def _ask(self, request: dict[str, Any], body: bytes) -> dict[str, Any]:
        await self._places.acquire()
        task = asyncio.create_task(self._work(request, body))
        self._working.add(task)
        task.add_done_callback(self._worked)
        return await asyncio.shield(task)

    async def _work(self, request: dict[str, Any], body: bytes) -> dict[str, Any]:
        process = self._free.pop() if self._free else await _start()
        done = False
        try:
            answer = await asyncio.wait_for(_exchange(process, request, body), self._seconds)
            done = True
        except (TimeoutError, ValueError, ConnectionError) as error:
            raise TooHard("it took too long") from error
        finally:
            if done:
                self._free.append(process)
            else:
                await _stop(process)
        return answer

    def _worked(self, task: asyncio.Task[dict[str, Any]]) -> None:
        self._places.release()
        self._working.discard(task)
        if not task.cancelled():
            task.exception()  # marks it as seen: perhaps nobody waits for it any more

    async def _warm(self) -> None:
        for _ in range(self._processes):
            async with self._places:
                if len(self._free) + len(self._working) < self._processes:
                    with contextlib.suppress(OSError, TooHard):
                        self._free.append(await _start())


async def _start() -> asyncio.subprocess.Process:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "hookline_websearch.content.worker"),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        limit=LINE_MAX,
    )
    try:
        await asyncio.wait_for(_line(process), START_SECONDS)
    except BaseException as error:
        await _stop(process)
        if isinstance(error, TimeoutError | ValueError | ConnectionError):
            raise TooHard("the process that reads does not start") from error
        raise
    return process


async def _exchange(
    process: asyncio.subprocess.Process, request: dict[str, Any], body: bytes
) -> dict[str, Any]:
    assert process.stdin is not None  # noqa: S101  # it was started with a pipe
    process.stdin.write(json.dumps(request).encode() + b"\n" + body)
    await process.stdin.drain()
    return await _line(process)


async def _line(process: asyncio.subprocess.Process) -> dict[str, Any]:
    assert process.stdout is not None  # noqa: S101  # it was started with a pipe
    answer: dict[str, Any] = json.loads(await process.stdout.readline())
    return answer


async def _stop(process: asyncio.subprocess.Process) -> None:
    with contextlib.suppress(ProcessLookupError):
        process.kill()
    if process.stdin is not None:
        process.stdin.close()
    await process.wait()
