"""What plugins report while they prepare an answer, and how a stream begins with it."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import httpx

from hookline import Exchange, InvalidRequest, hookimpl

BODY = {"messages": [{"role": "user", "content": "Hello there"}], "stream": True}


class Searcher:
    """Reports two steps; ``gate`` holds it between them."""

    def __init__(self, refuse: bool = False) -> None:
        self.gate = asyncio.Event()
        self.began = asyncio.Event()
        self.ended: list[str] = []
        self._refuse = refuse

    @hookimpl
    async def transform(self, exchange: Exchange) -> None:
        try:
            exchange.report("search", "plan")
            self.began.set()
            await self.gate.wait()
            exchange.report("search", "read", "3 pages")
            if self._refuse:
                raise InvalidRequest("No such place.", param="web_search")
            exchange.add_source({"type": "web", "title": "A page"})
        finally:
            self.ended.append("over")

    @hookimpl
    def opening_fields(self, exchange: Exchange) -> dict[str, Any]:
        return {"sources": exchange.sources}

    @hookimpl
    def response_headers(self, exchange: Exchange) -> dict[str, str]:
        return {"X-Found": str(len(exchange.sources))}


async def chunks(response: httpx.Response) -> list[dict[str, Any]]:
    lines = [line async for line in response.aiter_lines() if line.startswith("data: {")]
    return [json.loads(line[6:]) for line in lines]


async def test_reports_come_before_the_opening_chunk(on_port: Any) -> None:
    searcher = Searcher()
    async with (
        on_port(plugins={"searcher": searcher}) as server,
        server.client.stream("POST", "/v1/chat/completions", json=BODY) as response,
    ):
        assert not searcher.gate.is_set(), "the stream has begun while the search goes on"
        searcher.gate.set()
        said = await chunks(response)
    progress = [chunk["progress"] for chunk in said[:2]]
    assert progress == [
        {"phase": "search", "step": "plan"},
        {"phase": "search", "step": "read", "detail": "3 pages"},
    ]
    assert all(chunk["choices"][0]["delta"] == {} for chunk in said[:2])
    assert said[2]["choices"][0]["delta"]["role"] == "assistant"
    assert said[2]["sources"] == [{"index": 1, "type": "web", "title": "A page"}]
    assert said[-1]["choices"][0]["finish_reason"] == "stop"


async def test_refusal_after_a_report_is_an_error_event(on_port: Any) -> None:
    searcher = Searcher(refuse=True)
    searcher.gate.set()
    async with (
        on_port(plugins={"searcher": searcher}) as server,
        server.client.stream("POST", "/v1/chat/completions", json=BODY) as response,
    ):
        said = await chunks(response)
    assert response.status_code == 200
    assert said[-1]["error"]["message"] == "No such place."


async def test_a_plain_answer_hears_no_reports(on_port: Any) -> None:
    searcher = Searcher(refuse=True)
    searcher.gate.set()
    async with on_port(plugins={"searcher": searcher}) as server:
        response = await server.chat()
    assert response.status_code == 400


async def test_refusal_without_a_report_stays_a_status(on_port: Any) -> None:
    class Refusing:
        @hookimpl
        async def transform(self, exchange: Exchange) -> None:
            raise InvalidRequest("Not today.", param="web_search")

    async with on_port(plugins={"refusing": Refusing()}) as server:
        response = await server.chat(stream=True)
    assert response.status_code == 400
    assert response.json()["error"]["message"] == "Not today."


async def test_a_client_that_leaves_stops_the_search(on_port: Any, until: Any) -> None:
    searcher = Searcher()
    async with on_port(plugins={"searcher": searcher}) as server:
        async with server.client.stream("POST", "/v1/chat/completions", json=BODY):
            await searcher.began.wait()
        await until(lambda: searcher.ended == ["over"])
        await until(lambda: server.kernel.in_flight == 0)
