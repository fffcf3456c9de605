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

SLOW_SECONDS = 1.5
"""After so long a page makes room for others, so that a few hostile ones do not hold up all. Most
pages take a tenth of it."""


class TooHard(Exception):
    """The page took too long, too much memory, or broke the reading."""


class ReadingPool:
    """So many processes, kept while the server runs, and as many again for pages that take more
    than ``slow`` seconds. One event loop only."""

    def __init__(self, processes: int, seconds: float, slow: float = SLOW_SECONDS) -> None:
        self._processes = processes
        self._seconds = seconds
        self._slow_seconds = slow
        self._free: list[asyncio.subprocess.Process] = []
        self._places = asyncio.Semaphore(processes)
        self._warming: asyncio.Task[None] | None = None
        self._working: set[asyncio.Task[dict[str, Any]]] = set()
        self._slow: dict[asyncio.Task[Any] | None, asyncio.subprocess.Process] = {}

    def warm_up(self) -> None:
        """Begins to start the processes, so that the next pages need not wait for them."""
        if self._warming is None or self._warming.done():
            self._warming = asyncio.create_task(self._warm())

    async def read(
        self, body: bytes, media_type: str, charset: str, url: str, most: int
    ) -> Content:
        """Reads a page in a process: up to ``most`` characters of it.

        Raises TooHard. A process that does not answer in time is killed, or earlier where too many
        are slow; one whose answer nobody waits for any more finishes it, since another one would
        take seconds to start.
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
        moving = asyncio.get_running_loop().call_later(
            self._slow_seconds, self._make_room, asyncio.current_task(), process
        )
        done = False
        try:
            async with asyncio.timeout(self._seconds):
                answer = await _exchange(process, request, body)
            done = True
        except (TimeoutError, ValueError, ConnectionError) as error:
            raise TooHard("it took too long") from error
        finally:
            moving.cancel()
            if done and len(self._free) < self._processes:
                self._free.append(process)
            else:
                await _stop(process)
        return answer

    def _make_room(
        self, task: asyncio.Task[Any] | None, process: asyncio.subprocess.Process
    ) -> None:
        """Gives a slow page's place to others. Where as many are slow already, the first ends."""
        too_many = len(self._slow) - self._processes + 1
        for slow in list(self._slow.values())[: max(too_many, 0)]:
            _kill(slow)
        self._slow[task] = process
        self._places.release()
        self.warm_up()

    def _worked(self, task: asyncio.Task[dict[str, Any]]) -> None:
        if self._slow.pop(task, None) is None:
            self._places.release()
        self._working.discard(task)
        if not task.cancelled():
            task.exception()  # marks it as seen: perhaps nobody waits for it any more

    async def _warm(self) -> None:
        for _ in range(self._processes):
            async with self._places:
                at_work = len(self._working) - len(self._slow)
                if len(self._free) + at_work < self._processes:
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
        async with asyncio.timeout(START_SECONDS):
            await _line(process)
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


def _kill(process: asyncio.subprocess.Process) -> None:
    with contextlib.suppress(ProcessLookupError):
        process.kill()


async def _stop(process: asyncio.subprocess.Process) -> None:
    _kill(process)
    if process.stdin is not None:
        process.stdin.close()
    await process.wait()
