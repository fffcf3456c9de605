"""How the server and the processes that read files talk: JSON messages, each with its length."""

from __future__ import annotations

import asyncio
import json
import struct
from typing import Any, BinaryIO

LENGTH = struct.Struct("!I")


def pack(message: dict[str, Any]) -> bytes:
    """A message as bytes."""
    body = json.dumps(message).encode()
    return LENGTH.pack(len(body)) + body


def read_message(stream: BinaryIO) -> dict[str, Any] | None:
    """The next message; None at the end of the stream."""
    head = stream.read(LENGTH.size)
    if len(head) < LENGTH.size:
        return None
    message: dict[str, Any] = json.loads(stream.read(LENGTH.unpack(head)[0]))
    return message


async def receive_message(stream: asyncio.StreamReader) -> dict[str, Any]:
    """The next message. Raises IncompleteReadError at the end of the stream."""
    head = await stream.readexactly(LENGTH.size)
    message: dict[str, Any] = json.loads(await stream.readexactly(LENGTH.unpack(head)[0]))
    return message
