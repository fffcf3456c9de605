"""One file on its way into a collection: read, cut, embedded, stored."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from pathlib import Path

from hookline import Document, Embedder
from hookline_knowledge.catalog import Member, StoredFile
from hookline_knowledge.chunks import Chunk, Count, chunked
from hookline_knowledge.documents import ReadFile
from hookline_knowledge.embedding import EmbedderOf
from hookline_knowledge.ingest import Taken
from hookline_knowledge.library import Library
from hookline_knowledge.parsing import Unreadable
from hookline_knowledge.pictures.gallery import Gallery
from hookline_knowledge.store import Store

EMBEDDED_AT_ONCE = 64


class Intake:
    """Takes files in. Cancelling ends what is under way, between two steps of it."""

    def __init__(
        self,
        library: Library,
        read: ReadFile,
        store: Store,
        embedder: EmbedderOf,
        gallery: Gallery | None = None,
    ) -> None:
        self._library = library
        self._read = read
        self._store = store
        self._embedder = embedder
        self._gallery = gallery

    async def __call__(self, member: Member) -> Taken:
        """Takes a member in.

        Raises Unreadable where the file is at fault, ApiError where something is missing.
        """
        file = await self._library.file(member.file)
        path = self._library.blobs.path(file.hash)
        seen = await self._gallery.add(member, file, path) if self._gallery else 0
        try:
            taken = await self._take_text(member, file, path)
        except Unreadable:
            if not seen:
                raise
            return Taken(seen)  # a picture without text
        return Taken(seen + taken.bytes, taken.notes)

    async def _take_text(self, member: Member, file: StoredFile, path: Path) -> Taken:
        document = await self._read(path, file.name, file.media_type)
        embedder = await self._embedder()
        chunks = await cut(document, member, embedder)
        if not chunks:
            raise Unreadable("There is no text in it.")
        vectors = await embedded(embedder, [chunk.text for chunk in chunks])
        number = member.collection
        size = await self._store.add(embedder.name, number, member.seq, chunks, vectors)
        return Taken(size, " ".join(document.notes) or None)


async def embedded(embedder: Embedder, texts: Sequence[str]) -> list[list[float]]:
    """The vectors of passages, a few at a time, so that questions can come between."""
    vectors: list[list[float]] = []
    for begin in range(0, len(texts), EMBEDDED_AT_ONCE):
        vectors += await embedder.embed(texts[begin : begin + EMBEDDED_AT_ONCE])
    return vectors


async def cut(document: Document, member: Member, embedder: Embedder) -> list[Chunk]:
    """A document's passages, cut in a thread that ends when nobody waits for it any more.

    No passage is larger than what the embedding model reads at once: it would not see the rest.
    """
    size = min(member.chunking.tokens, embedder.max_tokens)
    overlap = min(member.chunking.overlap, size // 2)
    stop = threading.Event()

    def all_chunks() -> list[Chunk]:
        chunks = []
        for chunk in chunked(document.sections, _count(embedder, stop), size, overlap):
            chunks.append(chunk)
        return chunks

    try:
        return await asyncio.to_thread(all_chunks)
    except asyncio.CancelledError:
        stop.set()
        raise


def _count(embedder: Embedder, stop: threading.Event) -> Count:
    def count(text: str) -> int:
        if stop.is_set():
            raise InterruptedError
        return embedder.count(text)

    return count
