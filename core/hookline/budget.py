"""How long plugins may take: budgets of hooks, of start and of stop."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Generator
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from functools import partial
from types import TracebackType, coroutine
from typing import Any

from hookline.plugin import Plugin

log = logging.getLogger("hookline.plugins")


class OverBudget(Exception):
    """A hook did not answer in time."""


async def within(seconds: float, hook: Coroutine[Any, Any, Any]) -> Any:
    """Awaits a hook for so long, then cancels it. Raises OverBudget.

    The clock is only started where the hook really waits: most never do, and a timer costs more
    than they do.
    """
    try:
        waits_for = hook.send(None)
    except StopIteration as end:
        return end.value
    timeout = asyncio.timeout(seconds)
    try:
        async with timeout:
            return await _resumed(hook, waits_for)
    except TimeoutError:
        if timeout.expired():
            raise OverBudget(f"did not answer within {seconds:g} s") from None
        raise


@coroutine
def _resumed(hook: Coroutine[Any, Any, Any], waits_for: Any) -> Generator[Any, Any, Any]:
    """Goes on with a coroutine that was begun by hand and waits for something."""
    while True:
        try:
            sent = yield waits_for
        except BaseException as error:
            step: Callable[[], Any] = partial(hook.throw, error)
        else:
            step = partial(hook.send, sent)
        try:
            waits_for = step()
        except StopIteration as end:
            return end.value


async def enter(
    stack: AsyncExitStack,
    plugin: Plugin,
    manager: AbstractAsyncContextManager[None],
    seconds: float,
) -> None:
    """Enters a plugin's lifespan, to be left with the stack. Raises what it raises, or OverBudget.

    What goes wrong while it is left is logged: the others must be left too.
    """

    async def leave(
        kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            async with asyncio.timeout(seconds):
                await manager.__aexit__(kind, error, trace)
        except Exception as failure:
            if failure is not error:
                log.exception("plugin %s failed while it stopped", plugin.name)

    await within(seconds, manager.__aenter__())
    stack.push_async_exit(leave)
