"""Server-sent events: frames, keep-alive, and errors after the first byte."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from typing import Any

import pydantic_core
from quart import Response

from hookline.errors import ApiError

log = logging.getLogger(__name__)

KEEP_ALIVE_SECONDS = 8.0
"""After how long a silence something is sent; clients may rely on 10 s."""

KEEP_ALIVE = b": keep-alive\n\n"
DONE = b"data: [DONE]\n\n"


def frame(data: Any) -> bytes:
    """One event."""
    return b"data: " + pydantic_core.to_json(data) + b"\n\n"


def event_stream(chunks: AsyncGenerator[dict[str, Any], None]) -> Response:
    """A streamed response of chunks, closed by ``[DONE]``, never timed out."""
    response = Response(_frames(chunks), content_type="text/event-stream")
    response.headers["Cache-Control"] = "no-cache"
    response.headers["X-Accel-Buffering"] = "no"
    response.timeout = None
    return response


async def _frames(chunks: AsyncGenerator[dict[str, Any], None]) -> AsyncIterator[bytes]:
    try:
        async with aclosing(chunks), aclosing(kept_alive(chunks, KEEP_ALIVE_SECONDS)) as events:
            async for chunk in events:
                yield KEEP_ALIVE if chunk is None else frame(chunk)
        yield DONE
    except ApiError as error:
        yield frame(error.body())
    except Exception as error:
        log.exception("a stream failed")
        yield frame(ApiError(f"The server failed: {type(error).__name__}.").body())


async def kept_alive(
    chunks: AsyncIterator[dict[str, Any]], seconds: float
) -> AsyncGenerator[dict[str, Any] | None, None]:
    """The chunks, and None whenever there was none for so long."""
    while True:
        following = asyncio.ensure_future(anext(chunks, None))
        try:
            while not (await asyncio.wait([following], timeout=seconds))[0]:
                yield None
        finally:
            if not following.done():
                following.cancel()
                await asyncio.wait([following])
        chunk = following.result()
        if chunk is None:
            return
        yield chunk
