"""What knowledge adds to the time to the first token: `python -m bench.knowledge_chat`.

A collection of made-up passages, a server on loopback whose model says a word at once, and
questions with and without ``knowledge``, by turns. Those without it hold passages of the same
length already, so that what is left is embedding, searching and building the prompt.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import statistics
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import numpy as np
from hypercorn.asyncio import serve
from hypercorn.config import Config

from hookline import hookimpl
from hookline.app import create_app
from hookline.config import ModelSettings, Settings
from hookline.engines.scripted import ScriptedEngine, say
from hookline_knowledge.blobs import Received
from hookline_knowledge.catalog import members
from hookline_knowledge.chunks import Chunk

A_DOCUMENT = 50
"""Passages of a document."""
WORDS_A_PASSAGE = 90
VOCABULARY = 20_000
DIMENSIONS = 384
LIMIT_MS = 80.0
PORT = 18_459


class Model:
    """Says a word at once."""

    @hookimpl
    def create_engine(self, model: ModelSettings) -> ScriptedEngine:
        """Answers for every model."""
        return ScriptedEngine(say("Yes"), context=100_000)


def passage(random_: random.Random) -> str:
    """Words as often as in real text: few of them often, most hardly ever."""
    places = (int(VOCABULARY ** random_.random()) for _ in range(WORDS_A_PASSAGE))
    return " ".join(f"w{place}" for place in places) + "."


async def fill(base: object, count: int) -> None:
    """Adds passages with vectors in all directions, past the embedder, which would take long."""
    from hookline_knowledge.base import KnowledgeBase

    assert isinstance(base, KnowledgeBase)
    library, embedder = base.library, await base.embedder()
    collection = await library.create_collection("Bench")
    random_, numbers = random.Random(1), np.random.default_rng(1)  # noqa: S311
    for begin in range(0, count, A_DOCUMENT):
        path = library.worker.folder / f"bench-{begin}"
        path.write_bytes(b"")
        received = Received(path, 0, f"{begin:064x}")
        file = await library.add_file(received, f"{begin}.txt", purpose="user_data")
        (member,) = await library.add_members(collection, [(file.id, {}, base.chunking)])
        await library.catalog.write(members.take, library.worker.id)
        texts = [passage(random_) for _ in range(A_DOCUMENT)]
        chunks = [Chunk(t, "page 1", n, 0, len(t)) for n, t in enumerate(texts)]
        vectors = numbers.normal(size=(A_DOCUMENT, DIMENSIONS))
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        await base.store.add(embedder.name, 1, member.seq, chunks, vectors.tolist())
        await library.catalog.write(members.complete, member, library.worker.id, 0)


@asynccontextmanager
async def serving(folder: Path, chunks: int) -> AsyncIterator[str]:
    """A server with the collection."""
    settings = Settings(
        data_dir=folder, plugins=["knowledge"], plugin={"knowledge": {"floor": 0.0}}
    )
    app = create_app(settings, plugins={"model": Model()})
    config = Config()
    config.bind, config.errorlog = [f"127.0.0.1:{PORT}"], None
    stop = asyncio.Event()
    task = asyncio.create_task(serve(app, config, shutdown_trigger=stop.wait))
    try:
        async with httpx.AsyncClient() as client:
            while not await _is_up(client):  # noqa: ASYNC110 another side's state
                await asyncio.sleep(0.1)
        base = app.extensions["hookline"].plugins.found["knowledge"].instance.base
        await fill(base, chunks)
        yield f"http://127.0.0.1:{PORT}"
    finally:
        stop.set()
        await task


async def _is_up(client: httpx.AsyncClient) -> bool:
    try:
        return (await client.get(f"http://127.0.0.1:{PORT}/health")).is_success
    except httpx.ConnectError:
        return False


async def first_token(client: httpx.AsyncClient, content: str, **fields: object) -> float:
    """Milliseconds to the first text."""
    messages = [{"role": "user", "content": content}]
    body = {"messages": messages, "stream": True, **fields}
    begin = time.perf_counter()
    async with client.stream("POST", "/v1/chat/completions", json=body, timeout=60) as response:
        response.raise_for_status()
        async for line in response.aiter_lines():
            if '"Yes"' in line:
                return (time.perf_counter() - begin) * 1000
    raise RuntimeError("the answer held no text")


async def main(chunks: int, rounds: int) -> None:
    """Measures and prints; exits with 1 where it takes longer than it may."""
    random_ = random.Random(2)  # noqa: S311
    plain, with_knowledge = [], []
    with tempfile.TemporaryDirectory() as folder:
        async with serving(Path(folder), chunks) as url, httpx.AsyncClient(base_url=url) as client:
            for number in range(rounds + 3):
                question = " ".join(passage(random_).split()[:12]) + f" {number}?"
                filler = " ".join(passage(random_) for _ in range(6))
                without = await first_token(client, f"{question} {filler}")
                added = await first_token(client, question, knowledge=True)
                if number >= 3:  # the first load the embedder and warm the store
                    plain.append(without)
                    with_knowledge.append(added)
    added = statistics.median(with_knowledge) - statistics.median(plain)
    print(f"{chunks} passages, {rounds} questions, median to the first token:")
    print(f"  without knowledge {statistics.median(plain):.1f} ms")
    print(f"  with knowledge    {statistics.median(with_knowledge):.1f} ms")
    print(f"  added             {added:.1f} ms, may be {LIMIT_MS:.0f} ms")
    if added > LIMIT_MS:
        raise SystemExit(1)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--chunks", type=int, default=20_000)
    parser.add_argument("--rounds", type=int, default=40)
    arguments = parser.parse_args()
    asyncio.run(main(arguments.chunks, arguments.rounds))
