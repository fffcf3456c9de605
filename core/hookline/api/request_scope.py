"""Something that ends with a request, however the request ends."""

from __future__ import annotations

from contextlib import AsyncExitStack
from typing import Any, cast

from quart import request

KEY = "hookline.exit"


class RequestScope:
    """ASGI middleware: an exit stack for every request.

    A handler's own ``finally`` is not enough for a stream: the client may leave between the
    handler's return and the first chunk, when the generator of the body was never started and so
    has nothing to finish. This stack is closed in every case.
    """

    def __init__(self, app: Any) -> None:
        self._app = app

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Runs the application with a stack in the scope."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        async with AsyncExitStack() as stack:
            scope[KEY] = stack
            await self._app(scope, receive, send)


def request_stack() -> AsyncExitStack:
    """The current request's exit stack."""
    scope = cast(dict[str, AsyncExitStack], request.scope)
    return scope[KEY]
