"""Bodies that are read as they come, no faster than somebody takes them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, cast

from quart import Request, request
from quart.wrappers.request import Body

KEY = "hookline.body"
MOST_WAITING = 1 << 20
"""Bytes of a paced body that may wait in memory."""


class PacedBody(Body):
    """A body whose rest stays with the sender while enough of it waits, once it is ``paced``."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.paced = False
        self.taken = asyncio.Event()

    @property
    def is_full(self) -> bool:
        """Whether no more is to be fetched now."""
        return self.paced and len(self._data) >= MOST_WAITING

    async def __anext__(self) -> bytes:
        data = await super().__anext__()
        self.taken.set()
        return data


class PacedRequest(Request):
    """A request that shows its body to `Pacing`, and ends when its client leaves."""

    body_class: type[Body] = PacedBody

    def __init__(self, *args: Any, **named: Any) -> None:
        super().__init__(*args, **named)
        cast(dict[str, Any], self.scope)[KEY] = self.body

    async def get_data(self, *args: Any, **named: Any) -> Any:
        """The whole body, where the client is still there.

        Before Python 3.12 `asyncio.wait_for`, by which Quart waits for the body, swallows a cancel
        that comes together with the last byte: nobody would notice that the client has left.
        """
        data = await super().get_data(*args, **named)
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise asyncio.CancelledError("the client left")
        return data


class Pacing:
    """ASGI middleware: fetches no more of a body while enough of it waits."""

    def __init__(self, app: Any) -> None:
        self._app = app

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Runs the application; its ``receive`` may take its time."""

        async def paced_receive() -> Any:
            body = scope.get(KEY)
            while body is not None and body.is_full:
                body.taken.clear()
                await body.taken.wait()
            return await receive()

        await self._app(scope, paced_receive, send)


@asynccontextmanager
async def paced_body() -> AsyncIterator[Body]:
    """The current request's body, to be iterated over; paced inside of the block.

    After it the rest is fetched at once, so that a refusal reaches a client that still sends.
    """
    body = request.body
    if not isinstance(body, PacedBody):
        raise RuntimeError("the application does not pace bodies")
    body.paced = True
    try:
        yield body
    finally:
        body.paced = False
        body.taken.set()
