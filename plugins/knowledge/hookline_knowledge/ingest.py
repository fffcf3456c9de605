"""The queue of files to be read, and those that read them in the background.

The catalog is the queue, so nothing that was accepted is lost with the process: what is
``in_progress`` and taken by nobody alive is taken next.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass

from hookline import ApiError
from hookline_knowledge.catalog import Member, members
from hookline_knowledge.library import Library
from hookline_knowledge.parsing.unreadable import Unreadable
from hookline_knowledge.problems import is_full_disk

log = logging.getLogger(__name__)

POLL_SECONDS = 1.0
"""How soon what other processes added or removed is noticed."""
HOUSEKEEPING_SECONDS = 30.0
SPARE_PLACES = 1
"""Beyond those that large files can fill, for small ones: nothing that is being read is put off."""
SMALL_BYTES = 1 << 18


@dataclass(frozen=True, slots=True)
class Taken:
    """What was brought into the store: its bytes there, and what of the file is not in it."""

    bytes: int
    notes: str | None = None


TakeIn = Callable[[Member], Awaitable[Taken]]
"""Brings a member's text and vectors into the store.

Raises Unreadable where the file is at fault, ApiError where something else is missing.
"""


class Ingest:
    """Reads up to ``parallel`` files at once, and one more where it is small; of one batch, or
    whatever is waiting. ``stopping`` tells when to give back what is being read, and rest."""

    def __init__(
        self,
        library: Library,
        take_in: TakeIn,
        *,
        parallel: int,
        batch: str | None = None,
        stopping: Callable[[], bool],
    ) -> None:
        self._library = library
        self._take_in = take_in
        self._parallel = parallel
        self._batch = batch
        self._stopping = stopping
        self._running: dict[int, asyncio.Task[None]] = {}
        self._news = asyncio.Event()
        self._next_housekeeping = 0.0

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """At work inside of the block; what is half done at its end is given back."""
        self._library.unwanted = self.wake
        supervisor = asyncio.create_task(self._supervise())
        try:
            yield
        finally:
            supervisor.cancel()
            await asyncio.wait([supervisor])
            self._break_off()
            if self._running:
                await asyncio.wait(self._running.values())

    def wake(self) -> None:
        """There is something to do, or not to do any more."""
        self._news.set()

    def _break_off(self) -> None:
        for task in self._running.values():
            task.cancel()

    async def _supervise(self) -> None:
        while not self._stopping():
            try:
                await self._stop_unwanted()
                await self._keep_house()
                await self._start_some()
            except Exception:
                log.exception("the queue of files to be read is in trouble and tries again")
                await asyncio.sleep(POLL_SECONDS)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(POLL_SECONDS):  # wait_for can lose a cancel
                    await self._news.wait()
            self._news.clear()
        self._break_off()  # requests that must still be answered need what reading takes

    async def _stop_unwanted(self) -> None:
        if self._running:
            wanted = await self._library.catalog.read(members.wanted, self._library.worker.id)
            for seq in self._running.keys() - wanted:
                self._running[seq].cancel()

    async def _keep_house(self) -> None:
        now = asyncio.get_running_loop().time()
        if now >= self._next_housekeeping:
            self._next_housekeeping = now + HOUSEKEEPING_SECONDS
            await self._library.take_over()
            await self._give_back_strays()
            await self._library.expire()
            await self._library.reap()

    async def _give_back_strays(self) -> None:
        """What is not read any more and could not be given back, as on a full disk."""
        worker = self._library.worker.id
        taken = await self._library.catalog.read(members.taken, worker)
        for seq in set(taken) - set(self._running):
            await self._library.give_back(worker, seq)

    async def _start_some(self) -> None:
        worker = self._library.worker.id
        while (free := self._parallel + SPARE_PLACES - len(self._running)) > 0:
            most = SMALL_BYTES if free <= SPARE_PLACES else None
            member = await self._library.catalog.write(members.take, worker, self._batch, most)
            if member is None:
                return
            task = asyncio.create_task(self._read(member))
            self._running[member.seq] = task
            task.add_done_callback(lambda _, seq=member.seq: self._ended(seq))  # type: ignore[misc]

    def _ended(self, seq: int) -> None:
        del self._running[seq]
        self.wake()

    async def _read(self, member: Member) -> None:
        """One member from its bytes to its end, whatever that is."""
        try:
            await self._conclude(member)
        except asyncio.CancelledError:
            pass  # unwanted, or the server ends
        except Exception:
            log.exception("what became of a file could not be noted; it is read again later")
        # Not broken off by another cancel, or rows would stay that nobody knows of.
        tidying = asyncio.create_task(self._tidy(member))
        while not tidying.done():
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.shield(tidying)

    async def _conclude(self, member: Member) -> None:
        catalog, worker = self._library.catalog, self._library.worker.id
        try:
            taken = await self._take_in(member)
            await catalog.write(members.complete, member, worker, taken.bytes, taken.notes)
        except Exception as error:
            code, message = _reason(error)
            await catalog.write(members.fail, member, worker, code, message)

    async def _tidy(self, member: Member) -> None:
        try:
            await self._library.give_back(self._library.worker.id, member.seq)
            await self._library.reap()
        except Exception:
            log.exception("rows that nobody needs could not be removed yet")


def _reason(error: Exception) -> tuple[str, str]:
    if isinstance(error, Unreadable):
        return error.code, error.reason
    if isinstance(error, ApiError):
        return "server_error", error.message
    log.error("a file could not be read", exc_info=error)
    if is_full_disk(error):
        return "server_error", "There was no room left on the server's disk. Add the file again."
    return "server_error", "The server failed while it read the file. Its log has the details."
