"""The decoders of one server: processes that are started when needed, kept warm, and killed when
an image keeps them busy for too long."""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hookline import Image
from hookline_vision.data_url import FORMATS
from hookline_vision.refusal import Refused

SCRIPT = Path(__file__).with_name("decoder.py")

BUFFER = 2**20
"""Bytes of pixels that may wait in the pipe of a decoder; more makes it wait."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What decoding one image may cost: seconds, pixels, and bytes of address space."""

    seconds: float
    max_pixels: int
    memory: int


class Decoders:
    """At most ``most`` decoders. One event loop only."""

    def __init__(self, limits: Limits, most: int) -> None:
        self._limits = limits
        self._places = asyncio.Semaphore(most)
        self._free: list[Process] = []

    async def decode(self, text: bytes, declared: str, side: int) -> Image:
        """The picture of a base64 text in a declared format, no side longer than ``side``.

        Raises Refused. Cancelling it kills the decoder.
        """
        async with self._places:
            process = self._idle() or await self._start()
            try:
                async with asyncio.timeout(self._limits.seconds):
                    about, pixels = await _exchange(process, self._request(text, declared, side))
                self._free.append(process)
            except TimeoutError as error:
                raise Refused(
                    f"decoding it takes more than {self._limits.seconds:g} s. Save it anew, "
                    "smaller, with an image editor."
                ) from error
            except (OSError, EOFError, ValueError) as error:
                raise Refused("it broke the decoder. Save it anew with an image editor.") from error
            finally:
                if process not in self._free:
                    await _stop(process)
        if "refused" in about:
            raise Refused(about["refused"])
        return await asyncio.to_thread(Image, about["width"], about["height"], pixels)

    async def warm_up(self) -> None:
        """Starts one decoder where none is running."""
        async with self._places:
            if not self._free:
                self._free.append(await self._start())

    async def close(self) -> None:
        """Stops all decoders that are not at work."""
        while self._free:
            await _stop(self._free.pop())

    def _idle(self) -> Process | None:
        """A decoder that has nothing to do and still lives."""
        while self._free:
            process = self._free.pop()
            if process.returncode is None:
                return process
        return None

    def _request(self, text: bytes, declared: str, side: int) -> bytes:
        about = {
            "length": len(text),
            "format": declared,
            "formats": FORMATS,
            "max_pixels": self._limits.max_pixels,
            "side": side,
        }
        return json.dumps(about).encode() + b"\n" + text

    async def _start(self) -> Process:
        return await asyncio.create_subprocess_exec(
            # -P: the files beside the script must not be taken for libraries
            *(sys.executable, "-P", str(SCRIPT), str(self._limits.memory)),
            stdin=PIPE,
            stdout=PIPE,
            stderr=DEVNULL,
            limit=BUFFER,
        )


async def _exchange(process: Process, request: bytes) -> tuple[dict[str, Any], bytes]:
    """Asks, and reads what comes back: see `hookline_vision.decoder.serve`."""
    if process.stdin is None or process.stdout is None:
        raise EOFError("the decoder has no pipes")
    process.stdin.write(request)
    await process.stdin.drain()
    about: dict[str, Any] = json.loads(await process.stdout.readline())
    length = about.get("width", 0) * about.get("height", 0) * 3
    return about, await process.stdout.readexactly(length)


async def _stop(process: Process) -> None:
    with contextlib.suppress(ProcessLookupError):
        process.kill()
    if process.stdin is not None:
        process.stdin.close()
    await process.wait()
