"""The body of an answer, unpacked piece by piece and never further than its cap."""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import AsyncIterable

GZIP_OR_ZLIB = 47
RAW_DEFLATE = -15
PIECE = 2**18
"""Bytes that are unpacked before others get their turn."""


class BadBody(Exception):
    """The body cannot be unpacked; ``str(error)`` says why, as half a sentence."""


class Unpacked:
    """Undoes ``Content-Encoding``: nothing, gzip or deflate. Raises BadBody for others.

    Others are not asked for, and unpacking brotli or zstd has no cap: a kilobyte can become a
    gigabyte in one call.
    """

    def __init__(self, encoding: str) -> None:
        names = [name.strip() for name in encoding.lower().split(",")]
        names = [name for name in names if name not in ("", "identity")]
        if len(names) > 1 or not set(names) <= {"gzip", "x-gzip", "deflate"}:
            raise BadBody(f"it is packed as {encoding[:40]!r}, which was not asked for")
        self._packed = bool(names)
        self._unpack = zlib.decompressobj(GZIP_OR_ZLIB)
        # "deflate" means zlib's format, and some servers send the bare stream.
        self._may_be_raw = names == ["deflate"]

    async def read(self, raw: AsyncIterable[bytes], most: int) -> tuple[bytes, bool]:
        """Up to ``most`` bytes, and whether that was all."""
        body = bytearray()
        async for chunk in raw:
            rest = chunk
            while rest and len(body) <= most:
                piece, rest = self._feed(rest)
                body += piece
                await asyncio.sleep(0)
            if len(body) > most:
                return bytes(body[:most]), False
        return bytes(body), True

    def _feed(self, data: bytes) -> tuple[bytes, bytes]:
        """What a chunk holds, in pieces: one piece, and what of the chunk is still packed."""
        if not self._packed:
            return data, b""
        try:
            piece = self._unpack.decompress(data, PIECE)
        except zlib.error as error:
            if not self._may_be_raw:
                raise BadBody("its compression is broken") from error
            self._may_be_raw = False
            self._unpack = zlib.decompressobj(RAW_DEFLATE)
            return self._feed(data)
        self._may_be_raw = False
        return piece, self._unpack.unconsumed_tail
