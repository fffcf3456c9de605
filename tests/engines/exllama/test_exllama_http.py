"""An ExLlama engine behind the server, over HTTP."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

import httpx
import pytest_asyncio

from hookline.app import create_app
from hookline.config import Settings

SCHEMA = {
    "type": "object",
    "properties": {"sky": {"enum": ["blue", "grey"]}, "wet": {"type": "boolean"}},
    "required": ["sky", "wet"],
    "additionalProperties": False,
}


@asynccontextmanager
async def served(folder: Path, data_dir: Path, **model: Any) -> AsyncIterator[httpx.AsyncClient]:
    settings = Settings(
        data_dir=data_dir,
        plugins=["structured"],
        model={"source": str(folder), "context": 1024, "parallel": 2, **model},
    )
    app = create_app(settings)
    transport = httpx.ASGITransport(cast(Any, app))
    async with (
        app.test_app(),
        httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client,
    ):
        await app.extensions["hookline"].loaded
        yield client


@pytest_asyncio.fixture
async def client(
    machine: Any, folder: Path, tmp_path: Path, version: str
) -> AsyncIterator[httpx.AsyncClient]:
    async with served(folder, tmp_path / "data", engine=version) as client:
        yield client


async def chat(client: httpx.AsyncClient, **fields: Any) -> dict[str, Any]:
    body = {"messages": [{"role": "user", "content": "How is the sea?"}], **fields}
    response = await client.post("/v1/chat/completions", json=body)
    assert response.status_code == 200, response.text
    answer: dict[str, Any] = response.json()
    return answer


async def test_the_model_is_described(client: httpx.AsyncClient, version: str) -> None:
    model = (await client.get("/v1/models")).json()["data"][0]
    about = model["hookline"]
    assert (model["id"], about["engine"], about["exact_batches"]) == ("salty-3b", version, False)
    assert (about["context"], about["parallel"], about["cache"]) == (1024, 2, "fp16")


async def test_several_choices_with_logprobs(client: httpx.AsyncClient) -> None:
    about = {"n": 3, "temperature": 1, "seed": 4, "max_tokens": 6}
    answer = await chat(client, logprobs=True, top_logprobs=2, **about)
    assert len({choice["message"]["content"] for choice in answer["choices"]}) == 3
    assert answer["usage"]["completion_tokens"] <= 18
    for choice in answer["choices"]:
        assert all(len(one["top_logprobs"]) == 2 for one in choice["logprobs"]["content"])
    again = await chat(client, **about)
    said = [[choice["message"] for choice in one["choices"]] for one in (answer, again)]
    assert said[0] == said[1]


async def test_an_answer_matches_its_schema(client: httpx.AsyncClient) -> None:
    """Though the model says anything."""
    schema = {"name": "weather", "strict": True, "schema": SCHEMA}
    for seed in range(4):
        answer = await chat(
            client,
            temperature=1,
            seed=seed,
            max_tokens=200,
            response_format={"type": "json_schema", "json_schema": schema},
        )
        (choice,) = answer["choices"]
        said = json.loads(choice["message"]["content"])
        assert said["sky"] in ("blue", "grey") and isinstance(said["wet"], bool)
        assert choice["finish_reason"] == "stop"


async def test_what_was_read_before_is_counted(client: httpx.AsyncClient) -> None:
    first = await chat(client, max_tokens=2)
    again = await chat(client, max_tokens=2)
    assert first["usage"]["prompt_tokens_details"]["cached_tokens"] == 0
    assert again["usage"]["prompt_tokens_details"]["cached_tokens"] > 10
    assert again["choices"][0]["message"] == first["choices"][0]["message"]


async def test_a_stop_string_ends_a_stream(client: httpx.AsyncClient) -> None:
    whole = (await chat(client, max_tokens=30, logit_bias={"0": -100, "2": -100}))["choices"][0]
    text = whole["message"]["content"]
    stop = text[len(text) // 2 :][:2]
    body = {
        "messages": [{"role": "user", "content": "How is the sea?"}],
        "max_tokens": 30,
        "logit_bias": {"0": -100, "2": -100},
        "stop": [stop],
        "stream": True,
    }
    response = await client.post("/v1/chat/completions", json=body)
    lines = [line[6:] for line in response.text.splitlines() if line.startswith("data: {")]
    deltas = [choice for line in lines for choice in json.loads(line)["choices"]]
    said = "".join(choice["delta"].get("content") or "" for choice in deltas)
    assert said == text[: text.index(stop)]
    assert deltas[-1]["finish_reason"] == "stop"


async def test_a_fault_is_an_error_and_the_next_request_is_served(
    client: httpx.AsyncClient, machine: Any
) -> None:
    await chat(client, max_tokens=1)
    machine.faults.append(RuntimeError("an odd kernel"))
    body = {"messages": [{"role": "user", "content": "Hi"}]}
    response = await client.post("/v1/chat/completions", json=body)
    assert response.status_code == 502
    assert "an odd kernel" in response.json()["error"]["message"]
    assert (await client.get("/health")).status_code == 200
    await chat(client, max_tokens=1)
