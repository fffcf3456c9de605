"""One line in the log for each request."""

from __future__ import annotations

import asyncio
import logging
import re
from typing import Any

import pytest

from hookline import Caller, hookimpl
from hookline.engines.scripted import Pause

LOGGER = "hookline.api.request_log"


class Names:
    @hookimpl
    async def authenticate(self) -> Caller:
        return Caller("7", "lap\ntop")


def lines(caplog: Any) -> list[str]:
    return [
        re.sub(r"[0-9]+ ms", "# ms", record.getMessage())
        for record in caplog.records
        if record.name == LOGGER
    ]


async def test_what_a_line_says(in_process: Any, caplog: Any) -> None:
    caplog.set_level(logging.INFO, LOGGER)
    async with in_process(script=lambda prompt, job: ["One", " two"], plugins={"n": Names()}) as s:
        for stream in (False, True):
            await s.chat("a secret", stream=stream)
        await s.client.post("/v1/chat/completions?key=secret", json={})
        await s.client.get("/v1/models/a%0ab?secret", headers={"Authorization": "Bearer secret"})
        await s.client.get("/health")
        await s.client.get("/nothing")
    usage = "28 tokens in, 3 out, model scripted"
    assert lines(caplog) == [
        f"POST /v1/chat/completions 200 # ms, {usage}, caller lap\\ntop",
        f"POST /v1/chat/completions 200 # ms, {usage}, caller lap\\ntop",
        "POST /v1/chat/completions 400 # ms, caller lap\\ntop",
        "GET /v1/models/a\\nb 404 # ms, caller lap\\ntop",
        "GET /nothing 404 # ms, caller lap\\ntop",
    ]
    assert "secret" not in caplog.text


@pytest.mark.parametrize("stream", [False, True])
async def test_a_client_that_left(on_port: Any, caplog: Any, stream: bool) -> None:
    caplog.set_level(logging.INFO, LOGGER)
    async with on_port(script=lambda prompt, job: ["One", Pause(30)]) as server:
        asking = asyncio.create_task(server.chat("x", stream=stream))
        while not server.engine.stats().running:
            await asyncio.sleep(0.01)
        asking.cancel()
        while not lines(caplog):
            await asyncio.sleep(0.01)
    (line,) = lines(caplog)
    assert re.match(f"POST /v1/chat/completions {'200' if stream else '-'} # ms, ", line)
    assert line.endswith(", the client left")


async def test_it_can_be_switched_off(in_process: Any, caplog: Any) -> None:
    caplog.set_level(logging.DEBUG, LOGGER)
    async with in_process(settings={"log_requests": False}) as server:
        await server.chat()
    assert lines(caplog) == []
