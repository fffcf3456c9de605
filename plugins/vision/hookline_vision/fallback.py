"""Describes images for a model that cannot see: one at a time, each within its time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from hookline import Image
from hookline_vision.cache import Cache
from hookline_vision.labels import Labels
from hookline_vision.ocr import TextInImage
from hookline_vision.settings import VisionSettings
from hookline_vision.told import UNREAD, Describer, Told

REMEMBERED = 4_000_000
"""Characters of descriptions that are kept, for images that come again."""

NO_TURN = Told(
    UNREAD, "It was not read, because reading others took so long. Send fewer images at once."
)


class Fallback:
    """Describes images in the order of the calls, each for at most ``seconds``. One event loop
    only."""

    def __init__(self, describer: Describer, seconds: float) -> None:
        self._describer = describer
        self._seconds = seconds
        self._turn = asyncio.Lock()
        self._told = Cache[Told](REMEMBERED)

    async def load(self) -> None:
        """Loads what describing needs."""
        await self._describer.load()

    async def close(self) -> None:
        """Ends what describing started."""
        await self._describer.close()

    async def describe(self, image: Image, end: float, report: Callable[[], None]) -> Told:
        """What to tell about an image. ``report`` is called where that takes its time.

        ``end`` is the time of the event loop at which the request can wait no longer.
        """
        if (known := self._told.get(image.digest)) is not None:
            return known
        report()
        try:
            async with asyncio.timeout_at(end):
                await self._turn.acquire()
        except TimeoutError:
            return NO_TURN
        try:
            return await self._describe(image, end)
        finally:
            self._turn.release()

    async def _describe(self, image: Image, end: float) -> Told:
        if (known := self._told.get(image.digest)) is not None:  # since it waited
            return known
        left = end - asyncio.get_running_loop().time()
        if left <= 0:
            return NO_TURN
        told = await self._describer.describe(image, min(self._seconds, left))
        if left >= self._seconds:  # else there may be more to tell the next time
            self._told.put(image.digest, told, len(told.text))
        return told


def fallback_of(settings: VisionSettings) -> Fallback | None:
    """What the settings ask for. Raises ConfigError where it cannot be had."""
    if settings.fallback == "ocr":
        return Fallback(TextInImage(settings.fallback_memory_mb), settings.fallback_seconds)
    if settings.fallback == "clip":
        return Fallback(Labels(settings), settings.fallback_seconds)
    return None
