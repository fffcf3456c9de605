"""``/v1/embeddings`` as OpenAI's SDK and curl use it, and which embedder answers."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any, Literal

import httpx
import numpy as np
import pytest
from openai import AsyncOpenAI, BadRequestError

from hookline import Embedder, Usage, hookimpl
from hookline.hub import HubUnreachable
from hookline_knowledge.embedders import opening


@pytest.fixture
async def server(in_process: Any) -> AsyncIterator[Any]:
    async with in_process(settings={"plugins": ["knowledge"]}) as server:
        yield server


@pytest.fixture
async def openai(server: Any) -> AsyncIterator[AsyncOpenAI]:
    http: Any = httpx.AsyncClient(transport=server.client._transport, timeout=30)
    async with AsyncOpenAI(
        base_url="http://127.0.0.1/v1", api_key="none", http_client=http, max_retries=0
    ) as client:
        yield client


async def post(server: Any, **body: Any) -> httpx.Response:
    response: httpx.Response = await server.client.post("/v1/embeddings", json=body)
    return response


async def test_the_sdk_gets_vectors_in_order(openai: AsyncOpenAI) -> None:
    texts = ["A dog barks.", "Shares fell.", "The puppy is loud."]
    answer = await openai.embeddings.create(model="text-embedding-3-small", input=texts)
    assert [item.index for item in answer.data] == [0, 1, 2]
    dog, shares, puppy = (np.array(item.embedding) for item in answer.data)
    assert dog @ puppy > dog @ shares
    assert (answer.model, answer.object) == ("all-MiniLM-L6-v2", "list")
    assert answer.usage.prompt_tokens == answer.usage.total_tokens > 12
    (alone,) = (await openai.embeddings.create(model="x", input=texts[1])).data
    assert alone.embedding == pytest.approx(shares.tolist(), abs=1e-7)


async def test_numbers_and_base64_are_the_same(server: Any, openai: AsyncOpenAI) -> None:
    packed = await openai.embeddings.create(model="x", input="Hello")
    plain = (await post(server, input="Hello")).json()["data"][0]["embedding"]
    assert packed.data[0].embedding == pytest.approx(plain, abs=1e-9)
    assert len(plain) == 384
    assert np.linalg.norm(plain) == pytest.approx(1, abs=1e-5)


async def test_fewer_dimensions_keep_the_direction(server: Any) -> None:
    whole = (await post(server, input="Hello")).json()["data"][0]["embedding"]
    short = (await post(server, input="Hello", dimensions=64)).json()["data"][0]["embedding"]
    assert short == pytest.approx((np.array(whole[:64]) / np.linalg.norm(whole[:64])).tolist())


async def test_token_ids_are_texts_too(server: Any) -> None:
    words = (await post(server, input="hello world")).json()
    ids = (await post(server, input=[7592, 2088])).json()
    two = (await post(server, input=[[7592, 2088], [7592]])).json()
    assert ids["data"] == words["data"]
    assert two["data"][0] == words["data"][0]
    assert len(two["data"]) == 2


REFUSED: list[tuple[dict[str, Any], str, str]] = [
    ({}, "input", "required"),
    ({"input": ""}, "input", "empty"),
    ({"input": []}, "input", "empty"),
    ({"input": ["a", ""]}, "input", "empty"),
    ({"input": [[1], []]}, "input", "empty"),
    ({"input": 5}, "input", "string"),
    ({"input": ["a"] * 2049}, "input", "2049 texts; the most at once are 2048"),
    ({"input": [10**8]}, "input", r"input\[0\].*no token"),
    ({"input": [-1]}, "input", "no token"),
    ({"input": ["a", "word " * 300]}, "input", r"input\[1\].*300 tokens.*254"),
    ({"input": "a", "dimensions": 385}, "dimensions", "385.*384"),
    ({"input": "a", "dimensions": 0}, "dimensions", "1"),
    ({"input": "a", "encoding_format": "hex"}, "encoding_format", "base64"),
    ({"input": "a", "input_type": "poem"}, "input_type", "query"),
    ({"input": "a", "model": "smollm2-135m"}, "model", "all-MiniLM-L6-v2"),
]


async def test_what_cannot_be_meant_is_refused(server: Any) -> None:
    for body, param, message in REFUSED:
        response = await post(server, **body)
        error = response.json()["error"]
        assert response.status_code == 400, body
        assert (error["param"], error["type"]) == (param, "invalid_request_error")
        assert re.search(message, error["message"]), error["message"]


async def test_the_sdk_raises_what_it_should(openai: AsyncOpenAI) -> None:
    with pytest.raises(BadRequestError) as refused:
        await openai.embeddings.create(model="x", input="word " * 300)
    assert refused.value.code == "context_length_exceeded"


async def test_null_is_absent(server: Any) -> None:
    response = await post(server, input="a", dimensions=None, user=None, encoding_format=None)
    assert response.status_code == 200


async def test_models_lists_what_embeds(openai: AsyncOpenAI) -> None:
    async def about() -> dict[str, Any]:
        model = await openai.models.retrieve("all-MiniLM-L6-v2")
        found: dict[str, Any] = model.model_extra["hookline"] if model.model_extra else {}
        return found

    before = await about()
    assert (before["kind"], before["embeddings"], before["loaded"]) == ("embeddings", True, False)
    await openai.embeddings.create(model="x", input="a")
    after = await about()
    assert (after["loaded"], after["dimensions"], after["max_tokens"]) == (True, 384, 254)


async def test_a_missing_model_is_told(in_process: Any, tmp_path: Path) -> None:
    table = {"knowledge": {"embedder": str(tmp_path / "missing.gguf")}}
    async with in_process(settings={"plugins": ["knowledge"], "plugin": table}) as server:
        response = await post(server, input="a")
    assert response.status_code == 503
    assert response.json()["error"]["code"] == "knowledge_unavailable"
    assert "missing.gguf" in response.json()["error"]["message"]
    assert "Retry-After" not in response.headers  # waiting brings no file
    assert response.headers["x-should-retry"] == "false"  # which OpenAI's clients obey


async def test_a_hub_that_does_not_answer_can_be_tried_later(
    in_process: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unreachable(*_: Any) -> None:
        raise HubUnreachable("the hub does not answer")

    monkeypatch.setattr(opening, "find_model", unreachable)
    table = {"knowledge": {"embedder": "owner/repo"}}
    async with in_process(settings={"plugins": ["knowledge"], "plugin": table}) as server:
        response = await post(server, input="a")
    assert (response.status_code, response.headers["Retry-After"]) == (503, "30")
    assert "x-should-retry" not in response.headers


async def test_an_unknown_embedder_is_told(in_process: Any) -> None:
    table = {"knowledge": {"embedder": "nobody"}}
    async with in_process(settings={"plugins": ["knowledge"], "plugin": table}) as server:
        response = await post(server, input="a")
    assert (response.status_code, response.json()["error"]["code"]) == (
        503,
        "knowledge_unavailable",
    )


class Lengths:
    """A plugin with an embedder of two numbers, which cannot read token ids."""

    name = "lengths"
    dimensions = 2
    max_tokens = 100

    @hookimpl
    async def create_embedder(self, name: str) -> Embedder | None:
        return self if name == self.name else None

    def count(self, text: str) -> int:
        return len(text)

    async def embed(
        self,
        texts: Sequence[str],
        *,
        kind: Literal["query", "document"] = "document",
        usage: Usage | None = None,
    ) -> list[list[float]]:
        return [[float(len(text)), float(kind == "query")] for text in texts]


async def test_another_plugins_embedder_answers(in_process: Any) -> None:
    settings = {"plugins": ["knowledge"], "plugin": {"knowledge": {"embedder": "lengths"}}}
    async with in_process(plugins={"lengths": Lengths()}, settings=settings) as server:
        answer = (await post(server, input=["a", "bb"], input_type="query")).json()
        refused = await post(server, input=[1, 2])
        models = (await server.client.get("/v1/models")).json()["data"]
    assert answer["model"] == "lengths"
    assert [item["embedding"] for item in answer["data"]] == [[1, 1], [2, 1]]
    assert refused.status_code == 400
    assert "Send text" in refused.json()["error"]["message"]
    assert "lengths" in [model["id"] for model in models]


async def test_a_server_embeds_for_another(on_port: Any, in_process: Any, tmp_path: Path) -> None:
    one = {"plugins": ["knowledge"], "data_dir": tmp_path / "one"}
    async with on_port(settings=one) as near:
        table = {"knowledge": {"embedder": f"{near.url}/v1"}}
        far = {"plugins": ["knowledge"], "plugin": table, "data_dir": tmp_path / "other"}
        async with in_process(settings=far) as other:
            own = (await near.client.post("/v1/embeddings", json={"input": "Hello"})).json()
            theirs = (await post(other, input="Hello")).json()
    assert theirs["data"] == own["data"]
    assert theirs["usage"] == own["usage"]
    assert theirs["model"] == own["model"] == "all-MiniLM-L6-v2"
