"""Pixels of encoded pictures, from processes that may break."""

from __future__ import annotations

import asyncio
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from hookline_knowledge.parsing import Unreadable
from hookline_knowledge.pictures.settings import PictureSettings
from hookline_knowledge.wording import counted

if TYPE_CHECKING:
    from PIL.Image import Image

DECODER = Path(__file__).with_name("decoder.py")


async def decoded(data: bytes, limits: PictureSettings) -> Image:
    """A picture, small enough for CLIP. Raises Unreadable; cancelling ends the process."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-I", str(DECODER), str(limits.megapixels * 10**6)),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        async with asyncio.timeout(limits.seconds):
            pixels, problem = await process.communicate(data)
    except TimeoutError:
        raise Unreadable(
            f"Decoding the picture took longer than {counted(limits.seconds, 'second')}."
        ) from None
    finally:
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()
    if process.returncode:
        reason = problem.decode(errors="replace").strip().splitlines()
        raise Unreadable(reason[-1] if reason else "The picture breaks the program that reads it.")
    return _image(pixels)


def _image(pixels: bytes) -> Image:
    from PIL import Image

    size, _, rgb = pixels.partition(b"\n")
    width, height = map(int, size.split())
    return Image.frombytes("RGB", (width, height), rgb)
