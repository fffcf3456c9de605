"""Files as browsers and SDKs send them: ``multipart/form-data``, read as it comes."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

from quart import Request
from werkzeug.exceptions import RequestEntityTooLarge, RequestTimeout
from werkzeug.sansio.multipart import Data, Epilogue, Field, File, MultipartDecoder, NeedData

from hookline import InvalidRequest, UnsupportedMedia
from hookline.routes import paced_body
from hookline_knowledge.blobs import Blobs, Received, too_large
from hookline_knowledge.names import document_name

MULTIPART = "multipart/form-data"
FIELD_BYTES = 4096
SLICE_BYTES = 1 << 16
BUFFER_BYTES = 1 << 18
"""What the decoder may hold: a slice, and the headers of a part."""
MOST_PARTS = 32


@dataclass(slots=True)
class Form:
    """What a form holds: its one file, and its fields by name, ``a[b]`` as it stands there."""

    received: Received | None = None
    name: str = ""
    media_type: str | None = None
    fields: dict[str, str] = field(default_factory=dict)


async def read_form(request: Request, blobs: Blobs, *, limit: int, idle_seconds: float) -> Form:
    """Reads a form; its file goes to disk as it comes, never as a whole into memory.

    Raises InvalidRequest for a form that is broken, RequestTooLarge for a file over ``limit``
    bytes, UnsupportedMedia for anything else than a form. What was written is gone where it raises.
    """
    if request.mimetype != MULTIPART:
        raise UnsupportedMedia(f"Send the file as {MULTIPART}, with the fields 'file', 'purpose'.")
    reading = _Reading(request, blobs, limit, idle_seconds)
    try:
        async with paced_body():
            return await reading.form()
    except BaseException as error:
        if reading.result.received is not None:
            blobs.discard(reading.result.received)
        if isinstance(error, ValueError | RequestEntityTooLarge):
            raise InvalidRequest(f"The form cannot be read: {error}.") from error
        raise


class _Reading:
    def __init__(self, request: Request, blobs: Blobs, limit: int, idle_seconds: float) -> None:
        boundary = request.mimetype_params.get("boundary", "")
        if not boundary:
            raise InvalidRequest("The Content-Type of the form has no 'boundary'.")
        self._decoder = MultipartDecoder(
            boundary.encode("latin-1", "replace"), BUFFER_BYTES, max_parts=MOST_PARTS
        )
        self._waiting = memoryview(b"")
        self._body = request.body
        self._blobs = blobs
        self._limit = limit
        self._idle_seconds = idle_seconds
        self.result = Form()

    async def form(self) -> Form:
        while True:
            event = await self._event()
            if isinstance(event, Epilogue):
                return self.result
            if isinstance(event, File):
                await self._take_file(event)
            elif isinstance(event, Field):
                self.result.fields[event.name] = await self._field(event.name)

    async def _take_file(self, event: File) -> None:
        if event.name != "file" or self.result.received is not None:
            raise InvalidRequest(
                f"The form must hold one file, in the field 'file'; here is one in "
                f"'{event.name[:100]}'.",
                param="file",
            )
        self.result.name = document_name(event.filename)
        self.result.media_type = event.headers.get("Content-Type")
        self.result.received = await self._blobs.receive(self._part(), self._limit)

    async def _field(self, name: str) -> str:
        value = b""
        async for part in self._part():
            value += part
            if len(value) > FIELD_BYTES:
                raise ValueError(f"the field '{name[:100]}' is longer than {FIELD_BYTES} bytes")
        return value.decode()

    async def _part(self) -> AsyncIterator[bytes]:
        more = True
        while more:
            event = await self._event()
            if not isinstance(event, Data):
                raise ValueError("a part of it ends too early")
            more = event.more_data
            yield event.data

    async def _event(self) -> object:
        while isinstance(event := self._decoder.next_event(), NeedData):
            self._decoder.receive_data(await self._slice())
        return event

    async def _slice(self) -> bytes | None:
        """The next bytes of the body, not too many at once; None at its end."""
        if not self._waiting:
            try:
                async with asyncio.timeout(self._idle_seconds):
                    data = await anext(self._body, None)
            except TimeoutError:
                raise RequestTimeout from None
            except RequestEntityTooLarge as error:
                raise too_large(self._limit) from error
            if data is None:
                return None
            self._waiting = memoryview(data)
        part, self._waiting = self._waiting[:SLICE_BYTES], self._waiting[SLICE_BYTES:]
        return bytes(part)


def nested(fields: dict[str, str]) -> dict[str, object]:
    """Fields such as ``a[b]`` as objects: ``{"a": {"b": …}}``."""
    found: dict[str, object] = {}
    for name, value in fields.items():
        match = re.fullmatch(r"([^\[\]]+)\[([^\[\]]+)\]", name)
        outer = found.setdefault(match[1], {}) if match else found
        if isinstance(outer, dict):
            outer[match[2] if match else name] = value
    return found
