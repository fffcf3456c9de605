"""Keys and the daily allowance, over HTTP."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import openai
import pytest

from hookline.auth import new_key
from hookline.engines.scripted import Break, say

HEADERS = ("limit", "remaining", "reset")


def rate_headers(answer: Any) -> list[str]:
    return [answer.headers[f"x-ratelimit-{name}-requests"] for name in HEADERS]


def noon() -> datetime:
    return datetime(2026, 6, 1, 12, 0, tzinfo=UTC)


def allowance(daily: int, **quota: Any) -> dict[str, Any]:
    return {"quota": {"daily_prompts": daily, **quota}}


async def test_headers_count_down(on_port: Any, streamed: Any) -> None:
    async with on_port(settings=allowance(3), clock=noon) as server:
        assert rate_headers(await server.chat()) == ["3", "2", "12h0m0s"]
        assert rate_headers(await streamed(server)) == ["3", "1", "12h0m0s"]
        body = {"prompt": "x"}
        last = await server.client.post("/v1/completions", json=body)
        assert rate_headers(last) == ["3", "0", "12h0m0s"]
        for stream in (False, True):
            for path in ("chat/completions", "completions"):
                fields = body if path == "completions" else {"messages": [MESSAGE]}
                answer = await server.client.post(f"/v1/{path}", json={**fields, "stream": stream})
                error = answer.json()["error"]
                assert answer.status_code == 402
                assert (error["code"], error["type"]) == ("trial_exhausted", "insufficient_quota")
                assert answer.headers["content-type"] == "application/json"
                assert rate_headers(answer) == ["3", "0", "12h0m0s"]
        assert (await server.client.get("/v1/models")).status_code == 200
        assert (await server.client.post("/v1/tokenize", json={"text": "x"})).status_code == 200


MESSAGE = {"role": "user", "content": "Hi"}


async def test_the_sdk_does_not_retry(on_port: Any) -> None:
    async with (
        on_port(settings=allowance(1)) as server,
        openai.AsyncOpenAI(base_url=f"{server.url}/v1", api_key="x") as client,
    ):
        await server.chat()
        with pytest.raises(openai.APIStatusError) as error:
            await client.chat.completions.create(
                model="m", messages=[{"role": "user", "content": "Hi"}], stream=True
            )
        assert error.value.status_code == 402
        assert error.value.code == "trial_exhausted"
        metrics = (await server.client.get("/metrics")).text
    assert 'route="/v1/chat/completions",status="402"} 1.0' in metrics


async def test_refusals_do_not_count(on_port: Any, until: Any) -> None:
    engine = {"context": 100, "parallel": 1, "max_queue": 0}
    async with on_port(settings=allowance(5), engine=engine, clock=noon) as server:
        refused = [
            await server.chat("x" * 200),
            await server.chat(temperature="hot"),
            await server.chat(logit_bias={"99999": 1}, stream=True),
            await server.chat(tools=[{"type": "function", "function": {"name": "f"}}]),
            await server.chat(n=8),
            await server.client.post("/v1/chat/completions", content="{", headers=JSON),
            await server.client.post("/v1/completions", json={"prompt": []}),
        ]
        assert [answer.status_code for answer in refused] == [400, 400, 400, 400, 503, 400, 400]
        await until(lambda: server.kernel.in_flight == 0)
        assert rate_headers(await server.chat())[1] == "4"


JSON = {"Content-Type": "application/json"}


async def test_failures_of_the_server_and_leavers_count(on_port: Any, until: Any) -> None:
    script = say("a", Break(RuntimeError("boom")))
    async with on_port(settings=allowance(5), script=script, clock=noon) as server:
        assert (await server.chat()).status_code == 502
        answer = await server.chat()
        await until(lambda: server.engine.state == "ready" and server.kernel.in_flight == 0)
        assert answer.status_code in (502, 503)
        third = await server.chat(max_tokens=1)
        assert rate_headers(third)[1] == ("2" if answer.status_code == 502 else "3")


async def test_exactly_the_allowed_number_pass_at_once(on_port: Any) -> None:
    async with on_port(settings=allowance(7)) as server:
        answers = await asyncio.gather(*(server.chat() for _ in range(25)))
    statuses = [answer.status_code for answer in answers]
    assert (statuses.count(200), statuses.count(402)) == (7, 18)


async def test_tomorrow_is_another_day(on_port: Any) -> None:
    now = noon()
    async with on_port(settings=allowance(1), clock=lambda: now) as server:
        assert (await server.chat()).status_code == 200
        assert (await server.chat()).status_code == 402
        now += timedelta(hours=12)
        assert (await server.chat()).status_code == 200


async def test_no_allowance_no_headers(in_process: Any) -> None:
    async with in_process() as server:
        answer = await server.chat()
    assert not [name for name in answer.headers if name.startswith("x-ratelimit")]


async def test_keys_have_counts_of_their_own(on_port: Any, streamed: Any) -> None:
    settings = {**allowance(1, per_key=True), "auth": {"require_api_key": True}}
    async with on_port(settings=settings) as server:
        clients = []
        for name in ("one", "two"):
            key, stored = new_key(name, datetime.now(UTC))
            await server.kernel.store.add_key(stored)
            clients.append(openai.AsyncOpenAI(base_url=f"{server.url}/v1", api_key=key))
        for client in clients:
            assert await status_of(client) == 200
            assert await status_of(client) == 402
            await client.close()
        async with openai.AsyncOpenAI(base_url=f"{server.url}/v1", api_key="hl-no") as stranger:
            assert await status_of(stranger) == 401
        for stream in (False, True):
            refused = await server.chat(stream=stream)
            assert refused.status_code == 401
            assert refused.json()["error"]["code"] == "invalid_api_key"
        assert (await server.client.get("/health")).status_code == 200
        for path in ("/v1/models", "/metrics", "/docs", "/openapi.json", "/nothing"):
            assert (await server.client.get(path)).status_code == 401


async def status_of(client: openai.AsyncOpenAI) -> int:
    try:
        await client.chat.completions.create(
            model="m", messages=[{"role": "user", "content": "Hi"}]
        )
    except openai.APIStatusError as error:
        return error.status_code
    return 200
