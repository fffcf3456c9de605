"""Pictures as vectors beside those of passages, in a store of their own."""

from __future__ import annotations

import asyncio
import binascii
import hashlib
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar
from urllib.parse import unquote_to_bytes

from hookline import ConfigError, InvalidRequest
from hookline.media.clip import Clip
from hookline_knowledge.catalog import Member, StoredFile
from hookline_knowledge.chunks import Chunk
from hookline_knowledge.parsing import Unreadable
from hookline_knowledge.pictures.decoding import decoded
from hookline_knowledge.pictures.settings import PictureSettings
from hookline_knowledge.problems import KnowledgeUnavailable
from hookline_knowledge.store import Hit, Query, Store

LOCATION = "picture"
CLIP_STRETCH = 2.5
"""Similarities of texts and pictures are small: CLIPScore (Hessel and others, EMNLP 2021)."""
BEGINNINGS = (b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff", b"GIF8", b"BM", b"II*\0", b"MM\0*", b"RIFF")
"""How files of pictures begin."""

Result = TypeVar("Result")


def is_picture_url(text: str) -> bool:
    """Whether a query is a picture: a ``data:`` URL of one."""
    return text.startswith("data:image/")


class Gallery:
    """Looks at pictures, in a thread of its own; the model is loaded when it is first needed."""

    def __init__(self, settings: PictureSettings, store: Store) -> None:
        self._settings = settings
        self.store = store
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="hookline-pictures")
        self._loaded: tuple[Clip, str] | None = None

    def close(self) -> None:
        """Lets go of the model."""
        self._thread.shutdown(wait=False, cancel_futures=True)
        self._loaded = None

    async def add(self, member: Member, file: StoredFile, path: Path) -> int:
        """Adds a file where it is a picture; how many bytes it takes, 0 where it is none.

        Raises Unreadable for a picture that cannot be read.
        """
        if not await asyncio.to_thread(is_picture, path):
            return 0
        model, vector = await self._look(await asyncio.to_thread(path.read_bytes))
        chunk = Chunk(file.name, LOCATION, 0, 0, len(file.name))
        return await self.store.add(model, member.collection, member.seq, [chunk], [vector])

    async def search(
        self, numbers: Sequence[int], query: str, *, limit: int, only: Sequence[int] | None
    ) -> list[Hit]:
        """The pictures that fit a text, or are like a picture given as a ``data:`` URL."""
        if is_picture_url(query):
            try:
                model, vector = await self._look(bytes_of(query))
            except Unreadable as error:
                raise InvalidRequest(f"The picture of the query: {error.reason}") from error
            text = ""
        else:
            text, (model, vector) = query, await self._run(lambda: self._of_text(query))
        stretch = CLIP_STRETCH if text else 1.0
        floor = self._settings.floor
        return await self.store.search(
            Query(text, vector, model, numbers, only, limit, floor, stretch)
        )

    async def reembed(self, seq: int, path: Path) -> None:
        """Looks at a picture again, with another model."""
        model, vector = await self._look(await asyncio.to_thread(path.read_bytes))
        await self.store.reembed(model, seq, [vector])

    async def model(self) -> str:
        """The name of the model. Raises KnowledgeUnavailable."""
        return (await self._run(self._load))[1]

    async def _look(self, data: bytes) -> tuple[str, list[float]]:
        picture = await decoded(data, self._settings)

        def look() -> tuple[str, list[float]]:
            clip, name = self._load()
            return name, clip.embed_images([picture])[0].tolist()

        return await self._run(look)

    def _of_text(self, text: str) -> tuple[str, list[float]]:
        clip, name = self._load()
        return name, clip.embed_texts([text])[0].tolist()

    async def _run(self, work: Callable[[], Result]) -> Result:
        try:
            return await asyncio.get_running_loop().run_in_executor(self._thread, work)
        except ConfigError as error:
            raise KnowledgeUnavailable(f"Pictures cannot be looked at: {error}") from error

    def _load(self) -> tuple[Clip, str]:
        """The model, and a name that no other weights have."""
        if self._loaded is None:
            checkpoint = self._settings.checkpoint
            if checkpoint is None:
                raise ConfigError("[plugin.knowledge.pictures] checkpoint is not set.")
            clip = Clip(checkpoint, self._settings.architecture)
            with checkpoint.open("rb") as file:
                digest = hashlib.file_digest(file, "sha256").hexdigest()
            self._loaded = clip, f"clip {self._settings.architecture} {digest[:12]}"
        return self._loaded


def is_picture(path: Path) -> bool:
    """Whether a file begins like a picture."""
    with path.open("rb") as file:
        return file.read(16).startswith(BEGINNINGS)


def bytes_of(url: str) -> bytes:
    """The bytes of a base64 ``data:`` URL. Raises InvalidRequest."""
    head, _, body = url.partition(",")
    try:
        if not head.endswith(";base64"):
            raise ValueError("it is not base64")
        return binascii.a2b_base64(unquote_to_bytes(body))
    except ValueError as error:
        raise InvalidRequest(f"The picture's data: URL cannot be read: {error}.") from error
