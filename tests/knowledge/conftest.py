"""What the tests of knowledge share: a server with collections, asked through OpenAI's SDK."""

from __future__ import annotations

import asyncio
import math
import re
import zlib
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, cast

import httpx
import lancedb  # noqa: F401 here, as it takes a while, which no server is given to start
import pytest
from openai import AsyncOpenAI

from hookline import Embedder, Usage, hookimpl

DIMENSIONS = 256


@dataclass
class WordEmbedder:
    """Texts are alike when they share words. Waits at ``gate`` before each text of a document."""

    name: str = "words"
    dimensions: int = DIMENSIONS
    max_tokens: int = 256
    gate: asyncio.Event = field(default_factory=asyncio.Event)
    asked: list[str] = field(default_factory=list)
    fails_on: str | None = None

    def __post_init__(self) -> None:
        self.gate.set()

    @hookimpl
    async def create_embedder(self, name: str) -> Embedder | None:
        return self if name in ("", self.name) else None

    def count(self, text: str) -> int:
        return len(text.split())

    async def embed(
        self, texts: Sequence[str], *, kind: str = "document", usage: Usage | None = None
    ) -> list[list[float]]:
        vectors = []
        for text in texts:
            if kind == "document":
                await self.gate.wait()
            if self.fails_on and self.fails_on in text:
                raise RuntimeError("the embedder broke")
            self.asked.append(text)
            vectors.append(vector(text))
        return vectors


def vector(text: str) -> list[float]:
    words = Counter(zlib.crc32(word.encode()) % DIMENSIONS for word in _words(text))
    length = math.sqrt(sum(count * count for count in words.values())) or 1.0
    return [words[place] / length for place in range(DIMENSIONS)]


def _words(text: str) -> list[str]:
    return re.findall(r"[a-z0-9äöüß]+", text.lower())


@dataclass
class Reader:
    """A server with the plugin, and OpenAI's client for it."""

    server: Any
    openai: AsyncOpenAI
    embedder: WordEmbedder
    prompts: list[str]

    async def file(self, text: str | bytes, name: str = "notes.txt") -> str:
        data = text.encode() if isinstance(text, str) else text
        file = await self.openai.files.create(file=(name, data), purpose="assistants")
        return file.id

    async def collection(self, name: str = "Notes", **documents: str) -> str:
        """A collection with text files, all of them read."""
        store = await self.openai.vector_stores.create(name=name)
        for title, text in documents.items():
            file = await self.file(text, f"{title}.txt")
            added = await self.openai.vector_stores.files.create_and_poll(
                file, vector_store_id=store.id, poll_interval_ms=20
            )
            assert added.status == "completed", added.last_error
        return store.id

    async def rows(self) -> int:
        """How many passages the store holds."""
        plugin = self.server.kernel.plugins.found["knowledge"].instance
        count: int = await plugin.base.store.count()
        return count

    async def until_rows(self, wanted: int) -> None:
        """Waits until the store holds so many passages: rows that nobody sees go a moment later."""
        async with asyncio.timeout(20):
            while await self.rows() != wanted:
                await asyncio.sleep(0.02)

    async def until_idle(self) -> None:
        """Waits until nothing is being read."""
        async with asyncio.timeout(20):
            while True:
                stores = await self.openai.vector_stores.list(limit=100)
                if all(store.status != "in_progress" for store in stores.data):
                    return
                await asyncio.sleep(0.02)


Start = Callable[..., AbstractAsyncContextManager[Reader]]


@pytest.fixture
def reader(in_process: Any, on_port: Any) -> Start:
    """Starts a server whose model says, letter by letter, one text after the other, and the last
    from then on."""

    @asynccontextmanager
    async def start(
        *says: str,
        embedder: WordEmbedder | None = None,
        plugins: Sequence[str] = ("knowledge",),
        also: dict[str, Any] | None = None,
        clock: Any = None,
        settings: dict[str, Any] | None = None,
        engine: dict[str, Any] | None = None,
        port: bool = False,
        **table: Any,
    ) -> AsyncIterator[Reader]:
        embedder = embedder or WordEmbedder()
        prompts: list[str] = []
        answers = list(says) or ["Yes."]

        def script(prompt: str, job: Any) -> list[bytes]:
            prompts.append(prompt)
            text = answers.pop(0) if len(answers) > 1 else answers[0]
            return [bytes([byte]) for byte in text.encode()]

        async with (on_port if port else in_process)(
            script=script,
            plugins={"words": embedder, **(also or {})},
            clock=clock,
            settings={
                "plugins": list(plugins),
                "plugin": {"knowledge": {"floor": 0.25, **table}},
                **(settings or {}),
            },
            engine=engine or {},
        ) as server:
            url = server.url or "http://127.0.0.1"
            http = httpx.AsyncClient(transport=server.client._transport, timeout=30)
            async with AsyncOpenAI(
                base_url=f"{url}/v1", api_key="none", http_client=cast(Any, http), max_retries=0
            ) as client:
                yield Reader(server, client, embedder, prompts)

    return start


@pytest.fixture
def word_embedder() -> WordEmbedder:
    """An embedder for a test that has no server."""
    return WordEmbedder()
