"""Sees from a thread of its own when a plugin blocks the event loop, and says where it is.

A plugin that never returns to the loop cannot be interrupted, and nothing else gets to log it. This
costs the loop one call a second, and calls of hooks nothing: who is at work stands on the stack.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import sys
import threading
import time
import traceback
from collections.abc import Iterator
from types import FrameType

from hookline.budget import enter
from hookline.guarded_stage import GuardedStage
from hookline.isolation import Call, Isolation

log = logging.getLogger("hookline.watchdog")

PERIOD = 1.0
"""Seconds between two looks."""

PATIENCE = 3.0
"""Seconds after which something that happens at the start is told."""


@contextlib.contextmanager
def watching(seconds: float) -> Iterator[None]:
    """Watches the running loop from a thread: a plugin that blocks it for longer is logged with its
    stack, and again each time that twice as long has passed."""
    watchdog = _Watchdog(asyncio.get_running_loop(), seconds)
    watchdog.thread.start()
    try:
        yield
    finally:
        watchdog.stopped.set()
        watchdog.thread.join()


@contextlib.contextmanager
def telling_if_slow(what: str) -> Iterator[None]:
    """Logs that something is still going on where it takes longer than one would wait silently."""
    timer = threading.Timer(PATIENCE, log.warning, ("%s takes long …", what))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


class _Watchdog:
    def __init__(self, loop: asyncio.AbstractEventLoop, seconds: float) -> None:
        self.stopped = threading.Event()
        self.thread = threading.Thread(target=self._run, name="hookline-watchdog", daemon=True)
        self._loop, self._seconds = loop, seconds
        self._loop_thread = threading.get_ident()
        self._answered = threading.Event()

    def _run(self) -> None:
        asked, due = time.monotonic(), self._seconds
        self._answered.set()
        while not self.stopped.wait(PERIOD):
            now = time.monotonic()
            if self._answered.is_set():
                self._answered.clear()
                asked, due = now, self._seconds
                self._loop.call_soon_threadsafe(self._answered.set)
            elif now - asked >= due:
                due = 2 * (now - asked)
                self._tell(now - asked)

    def _tell(self, seconds: float) -> None:
        frame = sys._current_frames().get(self._loop_thread)  # no other way to another's stack
        if frame is not None and (found := at_work(frame)) is not None:
            plugin, hook, depth = found
            stack = "".join(traceback.format_stack(frame, limit=depth))
            log.error(
                "plugin %s has blocked the server for %.0f s in %s; it is here:\n%s",
                *(plugin, seconds, hook, stack),
            )


def at_work(innermost: FrameType) -> tuple[str, str, int] | None:
    """The plugin and the hook that a stack is in, and how many of its frames are inside of that
    call; None where it is in no plugin."""
    for depth, (frame, _) in enumerate(traceback.walk_stack(innermost)):
        if (found := _called_by(frame)) is not None:
            return *found, depth
    return None


def _called_by(frame: FrameType) -> tuple[str, str] | None:
    code = frame.f_code
    call: Call
    if code is Call.__call__.__code__:
        call = frame.f_locals["self"]
    elif code is Isolation.wait.__code__:
        call = frame.f_locals["call"]
    elif code in (GuardedStage.feed.__code__, GuardedStage.finish.__code__):
        call = frame.f_locals["self"].call
    elif code is enter.__code__:
        return frame.f_locals["plugin"].name, "lifespan"
    else:
        return None
    return call.plugin.name, call.hook
