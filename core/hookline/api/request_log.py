"""One line in the log for each request, when it is over."""

from __future__ import annotations

import asyncio
import logging
import time
from dataclasses import dataclass
from typing import Any, cast

from quart import request

from hookline.exchange import Caller, Exchange

log = logging.getLogger(__name__)

KEY = "hookline.note"
PATH_MAX = 200
"""Characters of a path in the log; it is the client's own text."""

POLLED = ("/health", "/metrics")
"""Paths that are asked every few seconds: at level debug."""


@dataclass(slots=True)
class Note:
    """What is known of a request: its status once it has one, whose key it has, what it generates.

    ``left``: the client did not wait for the end.
    """

    status: int | None = None
    caller: str = Caller().name
    exchange: Exchange | None = None
    left: bool = False


class RequestLog:
    """ASGI middleware: logs method, path, status, time, tokens, model and who asked.

    Never contents, keys or the query of an address.
    """

    def __init__(self, app: Any) -> None:
        self._app = app

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Runs the application with a `Note` in the scope."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        note = scope[KEY] = Note()
        began = time.perf_counter()

        async def noting_send(message: Any) -> None:
            if message["type"] == "http.response.start":
                note.status = message["status"]
            await send(message)

        try:
            await self._app(scope, receive, noting_send)
        except asyncio.CancelledError:
            note.left = True
            raise
        finally:
            level = logging.DEBUG if scope["path"] in POLLED else logging.INFO
            if log.isEnabledFor(level):
                log.log(level, "%s", line(scope, note, time.perf_counter() - began))


def note_of_request() -> Note:
    """The current request's note; one that nobody reads where requests are not logged."""
    return cast(dict[str, Note], request.scope).get(KEY) or Note()


def line(scope: Any, note: Note, seconds: float) -> str:
    """What the log says of a request."""
    path = _plain(scope["path"][:PATH_MAX])
    parts = [f"{scope['method']} {path} {note.status or '-'} {seconds * 1000:.0f} ms"]
    if note.exchange is not None:
        usage = note.exchange.usage
        parts.append(f"{usage.prompt_tokens} tokens in, {usage.completion_tokens} out")
        parts.append(f"model {note.exchange.model}")
    if note.caller != Caller().name:
        parts.append(f"caller {_plain(note.caller)}")
    if note.left or note.status is None:
        parts.append("the client left")
    return ", ".join(parts)


def _plain(text: str) -> str:
    """Text that stays on its line and sends nothing to a terminal."""
    return text.encode("unicode_escape").decode()
