"""An embedder behind the HTTP API that OpenAI has."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import httpx

from hookline import InvalidRequest, Usage
from hookline_knowledge.embedders.profiles import Profile, name_of, profile_of
from hookline_knowledge.problems import KnowledgeUnavailable
from hookline_knowledge.settings import KnowledgeSettings
from hookline_knowledge.wording import counted

BATCH = 64
"""Texts of one request."""
AT_ONCE = 4
"""Requests at a time; queries do not wait for those of documents."""
TRIES = 4
RETRY_SECONDS = 10
"""After which a server that did not answer may be tried again."""
TIMEOUT = httpx.Timeout(60, connect=10)
MAX_TOKENS = 512
"""What is taken for the length of a text that the model reads, since such servers do not tell."""
CHARACTERS_PER_TOKEN = 4


class RemoteEmbedder:
    """Fulfils `hookline.Embedder` with another server's model."""

    max_tokens = MAX_TOKENS

    def __init__(
        self, client: httpx.AsyncClient, model: str, name: str, profile: Profile, dimensions: int
    ) -> None:
        self.name = name
        self.dimensions = dimensions
        self._client = client
        self._model = model
        self._profile = profile
        self._free = asyncio.Semaphore(AT_ONCE)

    @classmethod
    async def open(
        cls,
        url: str,
        settings: KnowledgeSettings,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> RemoteEmbedder:
        """Finds the model and the length of its vectors. Raises KnowledgeUnavailable."""
        key = settings.embedder_api_key
        headers = {"Authorization": f"Bearer {key.get_secret_value()}"} if key else {}
        client = httpx.AsyncClient(
            base_url=url.rstrip("/"), headers=headers, timeout=TIMEOUT, transport=transport
        )
        try:
            model = settings.embedder_model or await _first_model(client)
            probe = await _post(client, {"model": model, "input": ["dimensions"]})
            dimensions = len(_vectors(probe, 1, client)[0])
        except InvalidRequest as error:
            await client.aclose()
            raise KnowledgeUnavailable(error.message) from error
        except BaseException:
            await client.aclose()
            raise
        name = name_of(model, settings)
        return cls(client, model, name, profile_of(model, settings), dimensions)

    def count(self, text: str) -> int:
        """An estimate that is rather too high."""
        return -(-len(text) // CHARACTERS_PER_TOKEN)

    async def embed(
        self,
        texts: Sequence[str],
        *,
        kind: Literal["query", "document"] = "document",
        usage: Usage | None = None,
    ) -> list[list[float]]:
        """One vector a text, in order. Raises KnowledgeUnavailable."""
        prefix = self._profile.prefix(kind)
        vectors: list[list[float]] = []
        for begin in range(0, len(texts), BATCH):
            batch = [prefix + text for text in texts[begin : begin + BATCH]]
            vectors += await self._batch(batch, kind, usage)
        return vectors

    async def _batch(self, batch: list[str], kind: str, usage: Usage | None) -> list[list[float]]:
        body = {"model": self._model, "input": batch, "encoding_format": "float"}
        if kind == "query":
            answer = await _post(self._client, body)
        else:
            async with self._free:
                answer = await _post(self._client, body)
        if usage is not None:
            usage.prompt_tokens += int((answer.get("usage") or {}).get("prompt_tokens") or 0)
        vectors = _vectors(answer, len(batch), self._client)
        if any(len(vector) != self.dimensions for vector in vectors):
            raise _unusable(self._client, f"vectors that have not {self.dimensions} numbers")
        return vectors

    async def close(self) -> None:
        """Closes the connections."""
        await self._client.aclose()


async def _first_model(client: httpx.AsyncClient) -> str:
    """The first model that says it embeds, else the first whose name does, else the first."""
    models = (await _send(client, "GET", "/models", None)).get("data")
    if not isinstance(models, list) or not models:
        raise _unusable(client, "no models; set [plugin.knowledge] embedder_model")

    def likely(model: Mapping[str, Any]) -> tuple[bool, bool]:
        return not (model.get("hookline") or {}).get("embeddings"), "embed" not in str(model["id"])

    return str(min(models, key=likely)["id"])


async def _post(client: httpx.AsyncClient, body: Mapping[str, Any]) -> dict[str, Any]:
    return await _send(client, "POST", "/embeddings", body)


async def _send(
    client: httpx.AsyncClient, method: str, path: str, body: Mapping[str, Any] | None
) -> dict[str, Any]:
    """An answer, asked for again where the server is busy or the connection broke."""
    for left in range(TRIES - 1, -1, -1):
        try:
            response = await client.request(method, path, json=body)
        except httpx.HTTPError as error:
            problem, wait = f"{type(error).__name__}: {error}".rstrip(": "), None
        else:
            if response.is_success:
                return _json(client, response)
            problem = f"status {response.status_code}: {response.text[:200].strip()}"
            wait = response.headers.get("Retry-After")
            if response.status_code in (400, 413, 422):
                raise InvalidRequest(
                    f"The embedding server at {client.base_url} refused: {problem}", param="input"
                )
            if response.status_code not in (408, 429) and response.status_code < 500:
                raise _refused(client, problem)
        if left:
            await asyncio.sleep(_pause(wait, TRIES - left))
    raise _refused(client, problem, retry_after=RETRY_SECONDS)


def _pause(asked: str | None, tries: int) -> float:
    """Seconds to wait: what the server asked for, at most ten, else twice as long each time."""
    if asked is not None and asked.isdecimal():
        return min(10.0, float(asked))
    return 0.25 * 2.0**tries


def _json(client: httpx.AsyncClient, response: httpx.Response) -> dict[str, Any]:
    try:
        answer = response.json()
    except ValueError:
        answer = None  # an HTML page, say
    if not isinstance(answer, dict):
        raise _unusable(client, "something that is no JSON object")
    return answer


def _vectors(
    answer: Mapping[str, Any], wanted: int, client: httpx.AsyncClient
) -> list[list[float]]:
    """The vectors by their index."""
    try:
        items = sorted(answer["data"], key=lambda item: int(item["index"]))
        vectors = [[float(number) for number in item["embedding"]] for item in items]
    except (KeyError, TypeError, ValueError):
        raise _unusable(client, "no list of embeddings") from None
    if len(vectors) != wanted or not all(vectors):
        raise _unusable(
            client, f"{counted(len(vectors), 'embedding')} of {counted(wanted, 'text')}"
        )
    return vectors


def _refused(
    client: httpx.AsyncClient, problem: str, retry_after: int | None = None
) -> KnowledgeUnavailable:
    return KnowledgeUnavailable(
        f"The embedding server at {client.base_url} cannot be used: {problem}. Check "
        "[plugin.knowledge] embedder, embedder_model and embedder_api_key.",
        retry_after=retry_after,
    )


def _unusable(client: httpx.AsyncClient, what: str) -> KnowledgeUnavailable:
    return KnowledgeUnavailable(f"The embedding server at {client.base_url} gave {what}.")
