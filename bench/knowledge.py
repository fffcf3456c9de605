"""Knowledge: how good and how quick search is, and how quick texts become vectors.

    python bench/knowledge.py quality CRANFIELD
    python bench/knowledge.py floor CRANFIELD
    python bench/knowledge.py search CRANFIELD [--chunks 20000] [--index-from 15000]
    python bench/knowledge.py embed CRANFIELD [--chunks 10000] [--threads 2]

``CRANFIELD`` is a folder with the Cranfield 1400 collection: ``cran.all.1400``, ``cran.qry`` and
``cranqrel``. Every document is one passage. In ``search`` most passages are made from those: their
sentences shuffled, their vectors turned a little, so that neighbours are as near as in real ones.
"""

from __future__ import annotations

import argparse
import asyncio
import math
import random
import re
import resource
import statistics
import tempfile
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from hookline_knowledge import KnowledgeSettings
from hookline_knowledge.chunks import Chunk
from hookline_knowledge.embedders import LocalEmbedder
from hookline_knowledge.embedders.opening import Embedders
from hookline_knowledge.store import Query, Store

GAINS = {1: 4, 2: 3, 3: 2, 4: 1}
"""Of the codes in ``cranqrel``, by which 1 is the best."""
TURNED = 0.03
"""Standard deviation of what is added to each number of a copied vector."""
A_DOCUMENT = 50
"""Passages of a made-up document."""
OFF_TOPIC = (
    "How do I bake sourdough bread?",
    "Who won the football world cup in 2014?",
    "What is the capital of Australia?",
    "How do I reset my password?",
    "Tell me a joke about cats",
    "Which vitamins are in spinach?",
    "What should I wear to a wedding?",
    "How are you today?",
    "Translate 'good morning' into Spanish",
    "When does the supermarket open on Sunday?",
    "What is the plot of Romeo and Juliet?",
    "How do I change a bicycle tyre?",
    "Write a poem about autumn leaves",
    "What are the symptoms of the flu?",
    "How much is the refund for a cancelled order?",
    "Explain how the stock market works",
    "What is a good name for a puppy?",
    "How do I learn to play the guitar?",
    "Which languages are spoken in Switzerland?",
    "What is the best way to remove a wine stain?",
    "How many days of holiday do employees get?",
    "Who painted the Mona Lisa?",
    "What does a notary do?",
    "How long do I have to boil an egg?",
)

Vectors = npt.NDArray[np.float32]


@dataclass(frozen=True)
class Cranfield:
    """Documents and questions; ``relevant`` has the gains of documents by question and id."""

    documents: Mapping[int, str]
    questions: Sequence[str]
    relevant: Mapping[int, Mapping[int, int]]


def read(folder: Path) -> Cranfield:
    """The collection."""
    documents = {}
    for entry in re.split(r"(?m)^\.I ", (folder / "cran.all.1400").read_text())[1:]:
        number, text = int(entry.split(None, 1)[0]), re.split(r"(?m)^\.W\s*$", entry)[1]
        documents[number] = " ".join(text.split())
    asked = re.split(r"(?m)^\.I ", (folder / "cran.qry").read_text())[1:]
    relevant: dict[int, dict[int, int]] = {}
    for line in filter(str.strip, (folder / "cranqrel").read_text().splitlines()):
        question, document, code = map(int, line.split()[:3])
        if code in GAINS:
            relevant.setdefault(question - 1, {})[document] = GAINS[code]
    return Cranfield(documents, [" ".join(q.split(".W", 1)[1].split()) for q in asked], relevant)


def ndcg(ranking: Sequence[int], gains: Mapping[int, int], depth: int = 10) -> float:
    """Normalised discounted cumulative gain."""

    def summed(values: Sequence[int]) -> float:
        return sum(gain / math.log2(place + 2) for place, gain in enumerate(values[:depth]))

    best = summed(sorted(gains.values(), reverse=True))
    return summed([gains.get(document, 0) for document in ranking]) / best if best else 0.0


@asynccontextmanager
async def embedder(folder: Path, threads: int = 2) -> AsyncIterator[LocalEmbedder]:
    """The default embedder."""
    embedders = Embedders(KnowledgeSettings(embedder_threads=threads), folder)
    try:
        opened = await embedders.get("minilm")
        assert isinstance(opened, LocalEmbedder)
        yield opened
    finally:
        await embedders.close()


@asynccontextmanager
async def opened(folder: Path, index_from: int = 15_000) -> AsyncIterator[Store]:
    """A store of its own."""
    store = Store(str(folder / "store"), index_from=index_from)
    await store.open()
    try:
        yield store
    finally:
        await store.close()


def chunk(text: str) -> Chunk:
    """A document that is one passage."""
    return Chunk(text, "", 0, 0, len(text))


async def filled(store: Store, model: LocalEmbedder, collection: Cranfield) -> Vectors:
    """The documents' vectors, once all are in the store; their ids are their numbers."""
    texts = list(collection.documents.values())
    vectors = await model.embed(texts)
    for (number, text), vector in zip(collection.documents.items(), vectors, strict=True):
        await store.add(model.name, 1, number, [chunk(text)], [vector])
    return np.asarray(vectors, np.float32)


async def quality(collection: Cranfield, folder: Path) -> None:
    """nDCG@10 by vectors alone and of both."""
    async with embedder(folder) as model, opened(folder) as store:
        vectors = await filled(store, model, collection)
        numbers = list(collection.documents)
        alone, hybrid = [], []
        for question, gains in collection.relevant.items():
            text = collection.questions[question]
            (vector,) = await model.embed([text], kind="query")
            order = np.argsort(-(vectors @ np.asarray(vector, np.float32)))
            alone.append(ndcg([numbers[place] for place in order[:10]], gains))
            hits = await store.search(Query(text, vector, model.name, [1]))
            hybrid.append(ndcg([hit.document for hit in hits], gains))
    print(
        f"nDCG@10 of {len(hybrid)} questions: by vectors {statistics.mean(alone):.3f}, "
        f"by vectors and words {statistics.mean(hybrid):.3f}"
    )


async def floor(collection: Cranfield, folder: Path) -> None:
    """The best similarity of questions that the documents answer, and of others."""
    async with embedder(folder) as model:
        texts = list(collection.documents.values())
        vectors = np.asarray(await model.embed(texts), np.float32)
        for name, questions in (("answered", collection.questions), ("off topic", OFF_TOPIC)):
            asked = np.asarray(await model.embed(questions, kind="query"), np.float32)
            best = np.sort((asked @ vectors.T).max(axis=1))
            shown = " ".join(f"{np.quantile(best, q):.3f}" for q in (0, 0.05, 0.5, 0.95, 1))
            print(f"{name}: least, 5 %, half, 95 %, most: {shown}")


def copied(
    collection: Cranfield, vectors: Vectors, count: int, rng: np.random.Generator
) -> tuple[list[str], Vectors]:
    """Passages like the collection's, with their vectors."""
    texts = list(collection.documents.values())
    places = rng.integers(0, len(texts), count)
    turned = vectors[places] + rng.normal(0, TURNED, (count, vectors.shape[1]))
    turned /= np.linalg.norm(turned, axis=1, keepdims=True)
    shuffled = []
    for place in places.tolist():
        sentences = texts[place].split(" . ")
        random.shuffle(sentences)
        shuffled.append(" . ".join(sentences))
    return shuffled, turned.astype(np.float32)


async def search(collection: Cranfield, folder: Path, chunks: int, index_from: int) -> None:
    """Milliseconds and recall of searches in a large store."""
    rng = np.random.default_rng(0)
    async with embedder(folder) as model, opened(folder, index_from) as store:
        vectors = await filled(store, model, collection)
        texts, more = copied(collection, vectors, chunks - len(vectors), rng)
        begin = time.perf_counter()
        for start in range(0, len(texts), A_DOCUMENT):
            part = [chunk(text) for text in texts[start : start + A_DOCUMENT]]
            rows = more[start : start + A_DOCUMENT].tolist()
            await store.add(model.name, 1, 100_000 + start, part, rows)
        print(f"{len(texts)} chunks added in {time.perf_counter() - begin:.1f} s")
        await timed(store, model, collection, "while it is written")
        for space in store._spaces.values():
            await space.tidy()
        await timed(store, model, collection, "tidied")
        await recall(store, model, collection, np.concatenate([vectors, more]))


async def timed(store: Store, model: LocalEmbedder, collection: Cranfield, state: str) -> None:
    """Prints how long questions take, with their embedding."""
    seconds, embedding = [], []
    for text in collection.questions[:100]:
        begin = time.perf_counter()
        (vector,) = await model.embed([text], kind="query")
        embedding.append(time.perf_counter() - begin)
        await store.search(Query(text, vector, model.name, [1]))
        seconds.append(time.perf_counter() - begin)
    for name, values in (("search", seconds), ("of that, embedding", embedding)):
        p50, p95 = (1000 * float(np.quantile(values, q)) for q in (0.5, 0.95))
        print(f"{state}: {name} p50 {p50:.1f} ms, p95 {p95:.1f} ms")


async def recall(
    store: Store, model: LocalEmbedder, collection: Cranfield, vectors: Vectors
) -> None:
    """Prints how many of the ten nearest are found. Without words, which would find others too."""
    kept = []
    for text in collection.questions[:100]:
        (vector,) = await model.embed([text], kind="query")
        exact = np.sort(vectors @ np.asarray(vector, np.float32))[-10]
        space = store._spaces[model.name]
        hits = await space.search(Query("", vector, model.name, [1], limit=10))
        kept.append(sum(hit.similarity >= exact - 1e-5 for hit in hits) / 10)
    print(f"recall@10 {statistics.mean(kept):.4f}")


async def embed(collection: Cranfield, folder: Path, chunks: int, threads: int) -> None:
    """Chunks a second from text into the store, and the memory that takes."""
    texts = list(collection.documents.values())
    async with embedder(folder, threads) as model, opened(folder) as store:
        begin, cpu = time.perf_counter(), time.process_time()
        for start in range(0, chunks, A_DOCUMENT):
            part = [texts[place % len(texts)] for place in range(start, start + A_DOCUMENT)]
            vectors = await model.embed(part)
            made = [replace(chunk(text), section=place) for place, text in enumerate(part)]
            await store.add(model.name, 1, start, made, vectors)
            done = start + A_DOCUMENT
            if done % 500 == 0:
                wall, used = time.perf_counter() - begin, time.process_time() - cpu
                most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
                print(
                    f"{done} chunks: {done / wall:.1f} a second, {done / used:.1f} a processor "
                    f"second, {most} MiB at most",
                    flush=True,
                )


def main() -> None:
    """Reads the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("what", choices=["quality", "floor", "search", "embed"])
    parser.add_argument("collection", type=Path)
    parser.add_argument("--chunks", type=int)
    parser.add_argument("--index-from", type=int, default=15_000)
    parser.add_argument("--threads", type=int, default=2)
    asked = parser.parse_args()
    collection = read(asked.collection)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        runs = {
            "quality": lambda: quality(collection, folder),
            "floor": lambda: floor(collection, folder),
            "search": lambda: search(collection, folder, asked.chunks or 20_000, asked.index_from),
            "embed": lambda: embed(collection, folder, asked.chunks or 10_000, asked.threads),
        }
        asyncio.run(runs[asked.what]())


if __name__ == "__main__":
    main()
