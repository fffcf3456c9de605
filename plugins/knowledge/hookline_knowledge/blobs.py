"""The bytes of files, each kept once under its hash."""

from __future__ import annotations

import asyncio
import hashlib
import secrets
from collections.abc import AsyncIterable
from dataclasses import dataclass
from pathlib import Path

from hookline import RequestTooLarge
from hookline_knowledge.problems import telling_of_full_disk

WRITE_BYTES = 1 << 18


@dataclass(frozen=True, slots=True)
class Received:
    """Bytes that have come, not kept yet: where they are, how many, and their SHA-256 in hex."""

    path: Path
    bytes: int
    hash: str


class Blobs:
    """The folder. ``incoming`` is where bytes wait until they are whole; the same file system."""

    def __init__(self, folder: Path, incoming: Path) -> None:
        self._folder = folder
        self._incoming = incoming

    def path(self, hash: str) -> Path:
        """Where the bytes of that hash are."""
        return self._folder / hash[:2] / hash

    async def receive(self, parts: AsyncIterable[bytes], limit: int) -> Received:
        """Writes bytes as they come, never many in memory; RequestTooLarge past ``limit``, and
        StorageFull."""
        path = self._incoming / secrets.token_hex(8)
        digest, size = hashlib.sha256(), 0
        try:
            with telling_of_full_disk(self._folder), path.open("xb") as file:

                def write(data: bytes) -> None:
                    digest.update(data)
                    file.write(data)

                async for data in _gathered(parts):
                    size += len(data)
                    if size > limit:
                        raise too_large(limit)
                    await asyncio.to_thread(write, data)
        except BaseException:
            path.unlink(missing_ok=True)
            raise
        return Received(path, size, digest.hexdigest())

    def keep(self, received: Received) -> None:
        """Puts what was received in its place. To be called while the catalog is locked, so that
        nobody removes the same bytes at the same moment."""
        path = self.path(received.hash)
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        received.path.replace(path)

    def discard(self, received: Received) -> None:
        """Drops what was received and is not to be kept."""
        received.path.unlink(missing_ok=True)

    def remove(self, hash: str) -> None:
        """Drops bytes that no file has any more. To be called while the catalog is locked."""
        self.path(hash).unlink(missing_ok=True)


async def read_file(path: Path) -> AsyncIterable[bytes]:
    """The bytes of a file, read outside the event loop."""
    with await asyncio.to_thread(path.open, "rb") as file:
        while data := await asyncio.to_thread(file.read, WRITE_BYTES):
            yield data


async def _gathered(parts: AsyncIterable[bytes]) -> AsyncIterable[bytes]:
    """The same bytes in fewer parts, since each costs a way to another thread and back."""
    waiting = bytearray()
    async for part in parts:
        waiting += part
        if len(waiting) >= WRITE_BYTES:
            yield bytes(waiting)
            waiting.clear()
    if waiting:
        yield bytes(waiting)


def too_large(limit: int) -> RequestTooLarge:
    """A file has more bytes than are kept."""
    return RequestTooLarge(
        f"The file is larger than {limit // (1024 * 1024)} MiB, which is the most that is kept "
        "([plugin.knowledge.parsing] file_mb, [server] max_body_mb)."
    )
