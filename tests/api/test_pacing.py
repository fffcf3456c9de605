"""Bodies that are read no faster than somebody takes them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any, cast

import httpx
from quart import Quart, request

from hookline.api.pacing import MOST_WAITING, PacedRequest, Pacing, paced_body

PART = 100_000
PARTS = 100


async def test_a_body_waits_with_its_sender() -> None:
    app, gate, reading = Quart(__name__), asyncio.Event(), asyncio.Event()
    app.request_class = PacedRequest
    app.asgi_app = Pacing(app.asgi_app)  # type: ignore[method-assign]
    sent = 0

    @app.post("/slow")
    async def slow() -> str:
        async with paced_body() as body:
            size = len(await anext(body))
            reading.set()
            await gate.wait()
            async for part in body:
                size += len(part)
        return str(size)

    @app.post("/refuse")
    async def refuse() -> tuple[str, int]:
        async with paced_body() as body:
            await anext(body)
        await request.body  # what comes after is taken whole
        return "no", 400

    async def content() -> AsyncIterator[bytes]:
        nonlocal sent
        for _ in range(PARTS):
            sent += PART
            yield b"x" * PART
            await asyncio.sleep(0)

    transport = httpx.ASGITransport(cast(Any, app))
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
        asking = asyncio.create_task(client.post("/slow", content=content()))
        await reading.wait()
        for _ in range(2 * PARTS):
            await asyncio.sleep(0)
        assert MOST_WAITING <= sent < MOST_WAITING + 5 * PART
        gate.set()
        assert (await asking).text == str(PART * PARTS)
        assert (await client.post("/refuse", content=content())).status_code == 400
        assert sent == 2 * PART * PARTS
