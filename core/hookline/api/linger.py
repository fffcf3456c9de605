"""Refusals that reach clients which are still sending."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

IDLE_SECONDS = 1.0
TOTAL_SECONDS = 30.0
"""How long a refused body may pause, and how long it may take in all."""


class Linger:
    """ASGI middleware: sends a refusal only when the body has come, or has stopped coming.

    Most refusals are decided before the body is read: it is too large, its kind is wrong, the key
    is. Closing a connection with unread bytes in it resets it, and then the client never sees why.
    The bytes are read by the application, which drops those over its limit.
    """

    def __init__(self, app: Any) -> None:
        self._app = app

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Runs the application with an eye on the body."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        body = _Arriving()

        async def watched_receive() -> Any:
            message = await receive()
            body.saw(message)
            return message

        async def patient_send(message: Any) -> None:
            if message["type"] == "http.response.start" and _is_refusal(message["status"]):
                await body.wait()
            await send(message)

        await self._app(scope, watched_receive, patient_send)


class _Arriving:
    def __init__(self) -> None:
        self._complete = False
        self._news = asyncio.Event()

    def saw(self, message: Any) -> None:
        self._complete = not message.get("more_body", False)
        self._news.set()

    async def wait(self) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(TOTAL_SECONDS):
                while not self._complete:
                    self._news.clear()
                    async with asyncio.timeout(IDLE_SECONDS):
                        await self._news.wait()


def _is_refusal(status: int) -> bool:
    # 408 says that the body has stopped coming.
    return status >= 400 and status != 408
