"""Embedders: the default model, GGUF models, other servers, and which of them a name means."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

from hookline import InvalidRequest, StartError, Usage
from hookline.models import embedded_model
from hookline_knowledge import KnowledgeSettings
from hookline_knowledge.embedders import Embedders, LocalEmbedder, gguf, minilm, remote
from hookline_knowledge.embedders.opening import Opened, is_ours
from hookline_knowledge.embedders.profiles import name_of, profile_of
from hookline_knowledge.embedders.remote import RemoteEmbedder
from hookline_knowledge.problems import KnowledgeUnavailable


@asynccontextmanager
async def opened(name: str, folder: Path, **settings: Any) -> AsyncIterator[Opened]:
    embedders = Embedders(KnowledgeSettings(embedder=name, **settings), folder)
    try:
        embedder = await embedders.get(name)
        assert embedder is not None
        yield embedder
    finally:
        await embedders.close()


def cosine(one: Sequence[float], other: Sequence[float]) -> float:
    return float(np.dot(one, other))


# The default


@pytest.fixture(scope="module")
def model() -> minilm.MiniLm:
    return minilm.MiniLm(threads=1)


def test_the_default_model_knows_meanings(model: minilm.MiniLm) -> None:
    dog, puppy, market = (
        model.embed(text)[0] for text in ("A dog barks.", "The puppy is loud.", "Shares fell.")
    )
    assert dog.shape == (384,)
    assert np.linalg.norm(dog) == pytest.approx(1)
    assert dog @ puppy > 0.45 > 0.2 > dog @ market


def test_the_default_model_gives_the_known_vector(model: minilm.MiniLm) -> None:
    # the first numbers that sentence-transformers/all-MiniLM-L6-v2 gives in full precision
    vector, tokens = model.embed("This is an example sentence")
    known = [0.0677, 0.0635, 0.0487, 0.0793, 0.0374]
    assert vector[:5] == pytest.approx(known, abs=0.012)
    assert tokens == 7


def test_long_texts_are_read_to_the_limit(model: minilm.MiniLm) -> None:
    words = ["word"] * 254
    vector, tokens = model.embed(" ".join([*words, "ships", "sail"]))
    assert tokens == 256
    assert np.array_equal(vector, model.embed(" ".join(words))[0])
    assert len(model.tokenize(" ".join(words))) == model.max_tokens


def test_tokens_go_back_and_forth(model: minilm.MiniLm) -> None:
    assert model.detokenize(model.tokenize("Hello world, again")) == "hello world, again"
    with pytest.raises(ValueError, match="99999 is no token"):
        model.detokenize([7592, 99999])


def test_odd_texts_have_vectors_too(model: minilm.MiniLm) -> None:
    for text in ("", " ", "\0", "🦊", "\ud800", "[SEP]"):
        vector, tokens = model.embed(text)
        assert np.isfinite(vector).all()
        assert tokens >= 2


def test_a_missing_package_is_told() -> None:
    with pytest.raises(StartError, match=r"hookline\[knowledge\]"):
        minilm.package_file("no-such-package-anywhere", "model.onnx")
    with pytest.raises(StartError, match="reinstall"):
        minilm.package_file("pluggy", "model.onnx")


async def test_vectors_do_not_depend_on_their_neighbours(tmp_path: Path) -> None:
    texts = [f"Sentence number {number}, {'long ' * number}" for number in range(12)]
    async with opened("minilm", tmp_path) as embedder:
        usage = Usage()
        together = await embedder.embed(texts, usage=usage)
        for text, vector in zip(texts, together, strict=True):
            assert await embedder.embed([text], kind="query") == [vector]
    assert embedder.name == "all-MiniLM-L6-v2"
    assert usage.prompt_tokens == sum(embedder.count(text) + 2 for text in texts)


# GGUF


@pytest.mark.model
async def test_a_generating_model_embeds_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gguf, "MOST_TOKENS", 64)
    path = embedded_model()
    async with opened(str(path), tmp_path, embedder_threads=1) as embedder:
        assert isinstance(embedder, LocalEmbedder)
        assert (embedder.name, embedder.dimensions) == (path.stem, 576)
        usage = Usage()
        texts = ["The dog barks at night.", "A dog barked last night.", "Interest rates of banks"]
        first, second, third = await embedder.embed(texts, usage=usage)
        assert cosine(first, first) == pytest.approx(1)
        assert cosine(first, second) > cosine(first, third)
        assert await embedder.embed(texts[:1]) == [first]
        assert usage.prompt_tokens >= sum(embedder.count(text) for text in texts)
        assert embedder.detokenize([*(await _ids(embedder, "Hello there"))]) == "Hello there"
        (long,) = await embedder.embed(["word " * 100])
        assert np.linalg.norm(long) == pytest.approx(1)
        with pytest.raises(ValueError, match="no token"):
            embedder.detokenize([10**7])


async def _ids(embedder: LocalEmbedder, text: str) -> list[int]:
    return await asyncio.to_thread(embedder._backend.tokenize, text)


@pytest.mark.parametrize("content", [b"no model", b"GGUF and then nonsense"])
async def test_a_broken_file_is_told(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "broken.gguf"
    path.write_bytes(content)
    embedders = Embedders(KnowledgeSettings(), tmp_path)
    with pytest.raises(KnowledgeUnavailable, match=r"broken\.gguf") as refused:
        await embedders.get(str(path))
    assert (refused.value.status, refused.value.code) == (503, "knowledge_unavailable")
    await embedders.close()


async def test_a_missing_file_is_told_and_tried_again(tmp_path: Path) -> None:
    embedders = Embedders(KnowledgeSettings(), tmp_path)
    for _ in range(2):
        with pytest.raises(KnowledgeUnavailable, match="There is no model at"):
            await embedders.get(str(tmp_path / "missing.gguf"))
    await embedders.close()


# Names


@pytest.mark.parametrize(
    ("name", "ours"),
    [
        ("minilm", True),
        ("./model.gguf", True),
        ("model.gguf", True),
        ("owner/repo", True),
        ("owner/repo:Q8_0", True),
        ("http://127.0.0.1:8080/v1", True),
        ("letters", False),
        ("minilm2", False),
    ],
)
def test_which_names_are_ours(name: str, ours: bool) -> None:
    assert is_ours(name) is ours


async def test_a_model_is_opened_once(tmp_path: Path) -> None:
    embedders = Embedders(KnowledgeSettings(), tmp_path)
    assert await embedders.get("letters") is None
    assert embedders.about("minilm")["loaded"] is False
    one, other = await asyncio.gather(embedders.get("minilm"), embedders.get("minilm"))
    assert one is other is not None
    about = embedders.about("minilm")
    assert (about["id"], about["dimensions"], about["loaded"]) == ("all-MiniLM-L6-v2", 384, True)
    await embedders.close()


async def test_a_caller_that_leaves_takes_no_model_away(tmp_path: Path) -> None:
    embedders = Embedders(KnowledgeSettings(), tmp_path)
    leaving = asyncio.create_task(embedders.get("minilm"))
    staying = asyncio.create_task(embedders.get("minilm"))
    await asyncio.sleep(0)
    leaving.cancel()
    assert await staying is not None
    await embedders.close()


@pytest.mark.parametrize(
    ("model", "query", "document"),
    [
        ("all-MiniLM-L6-v2", "", ""),
        ("intfloat/multilingual-e5-small", "query: ", "passage: "),
        ("Qwen3-Embedding-0.6B-Q8_0", "Instruct: ", ""),
        ("nomic-embed-text-v1.5.Q4_K_M", "search_query: ", "search_document: "),
        ("BAAI/bge-small-en-v1.5", "Represent this sentence", ""),
        ("bge-m3", "", ""),
        ("snowflake-arctic-embed-l-v2.0", "query: ", ""),
        ("embeddinggemma-300m", "task: search result", "title: none"),
    ],
)
def test_models_are_told_what_they_were_trained_with(model: str, query: str, document: str) -> None:
    profile = profile_of(model, KnowledgeSettings())
    assert profile.query.startswith(query)
    assert profile.document.startswith(document)
    assert bool(profile.query) == bool(query)
    assert bool(profile.document) == bool(document)


def test_prefixes_of_the_settings_win_and_change_the_name() -> None:
    settings = KnowledgeSettings(query_prefix="Q: ", document_prefix="")
    profile = profile_of("e5-small", settings)
    assert (profile.query, profile.document) == ("Q: ", "")
    assert name_of("e5-small", settings) != name_of("e5-small", KnowledgeSettings())
    assert name_of("e5-small", KnowledgeSettings(query_prefix="Q: ")) == "e5-small"


# Other servers


URL = "http://embeddings.test/v1"


class Api(httpx.AsyncBaseTransport):
    """An embedding server: a text's vector is its length and how many words it has.

    ``instead`` are answers to give first, or errors to raise.
    """

    def __init__(self, *instead: httpx.Response | Exception) -> None:
        self.instead = list(instead)
        self.requests: list[httpx.Request] = []

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        if self.instead:
            answer = self.instead.pop(0)
            if isinstance(answer, Exception):
                raise answer
            return answer
        if request.url.path == "/v1/models":
            return httpx.Response(200, json={"data": [{"id": "chat"}, {"id": "small-embed"}]})
        texts = json.loads(request.content)["input"]
        data = [
            {"index": index, "embedding": [float(len(text)), float(len(text.split()))]}
            for index, text in enumerate(texts)
        ]
        usage = {"prompt_tokens": len(texts), "total_tokens": len(texts)}
        return httpx.Response(200, json={"data": data[::-1], "usage": usage})

    def bodies(self) -> list[dict[str, Any]]:
        return [json.loads(request.content) for request in self.requests if request.content]


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote, "_pause", lambda asked, tries: 0.0)


async def connected(api: Api, **settings: Any) -> RemoteEmbedder:
    return await RemoteEmbedder.open(URL, KnowledgeSettings(**settings), api)


async def test_another_server_embeds_in_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote, "BATCH", 2)
    api = Api()
    embedder = await connected(api, embedder_api_key="sk-secret", document_prefix="p: ")
    assert (embedder.name, embedder.dimensions) == ("small-embed+" + embedder.name[-8:], 2)
    usage = Usage()
    assert await embedder.embed(["a", "b b", "c c c"], usage=usage) == [[4, 2], [6, 3], [8, 4]]
    assert usage.prompt_tokens == 3
    assert [body["input"] for body in api.bodies()[1:]] == [["p: a", "p: b b"], ["p: c c c"]]
    assert {request.headers["Authorization"] for request in api.requests} == {"Bearer sk-secret"}
    assert {body["model"] for body in api.bodies()} == {"small-embed"}
    assert embedder.count("twelve chars") == 3
    await embedder.close()


async def test_a_busy_server_is_asked_again() -> None:
    busy = httpx.Response(429, headers={"Retry-After": "1"})
    api = Api(busy, httpx.ConnectError("refused"), httpx.Response(502))
    embedder = await connected(api, embedder_model="m")
    assert await embedder.embed(["a"]) == [[1, 1]]
    assert len(api.requests) == 5
    await embedder.close()


@pytest.mark.parametrize(
    ("answers", "message", "later"),
    [
        ([httpx.Response(401, text="bad key")], "status 401: bad key.*embedder_api_key", None),
        ([httpx.ConnectError("refused")] * 4, "ConnectError: refused", "10"),
        ([httpx.Response(503, text="busy")] * 4, "status 503: busy", "10"),
        ([httpx.Response(400, text="no such model")], "refused: status 400: no such model", None),
        ([httpx.Response(200, text="<html>")], "no JSON object", None),
        ([httpx.Response(200, json={"data": [{"index": 0}]})], "no list of embeddings", None),
        ([httpx.Response(200, json={"data": []})], "0 embeddings of 1 text\\.", None),
    ],
)
async def test_a_server_that_cannot_be_used_is_told(
    answers: list[httpx.Response | Exception], message: str, later: str | None
) -> None:
    with pytest.raises(KnowledgeUnavailable, match=message) as refused:
        await connected(Api(*answers), embedder_model="m", embedder_api_key="sk-secret")
    assert "sk-secret" not in refused.value.message
    assert refused.value.headers.get("Retry-After") == later  # only where waiting can help


async def test_a_server_without_models_is_told() -> None:
    with pytest.raises(KnowledgeUnavailable, match="embedder_model"):
        await connected(Api(httpx.Response(200, json={"data": []})))


async def test_what_the_server_refuses_is_the_texts_fault() -> None:
    api = Api()
    embedder = await connected(api, embedder_model="m")
    api.instead = [httpx.Response(400, text="too long")]
    with pytest.raises(InvalidRequest, match="too long"):
        await embedder.embed(["a"])
    api.instead = [httpx.Response(200, json={"data": [{"index": 0, "embedding": [1, 2, 3]}]})]
    with pytest.raises(KnowledgeUnavailable, match="not 2 numbers"):
        await embedder.embed(["a"])
    await embedder.close()


def test_pauses_grow_and_have_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    assert [remote._pause(None, tries) for tries in (1, 2, 3)] == [0.5, 1, 2]
    assert remote._pause("3", 1) == 3
    assert remote._pause("900", 1) == 10
