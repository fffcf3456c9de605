"""The text in an image, quoted, so that nothing in it can pass for somebody else's words."""

from __future__ import annotations

import logging

from hookline import Image, quoted
from hookline.media.ocr_process import ReaderBroke, TextProcess, TextRead
from hookline_vision.told import UNREAD, Told, require

log = logging.getLogger(__name__)

LIMIT = "the {seconds:.0f} s that it may take (fallback_seconds in [plugin.vision])"


class TextInImage:
    """Reads printed text in a process of its own, which the first image starts."""

    def __init__(self, memory_mb: int) -> None:
        require("rapidocr", "[plugin.vision] fallback = 'ocr'", "ocr")
        self._process = TextProcess(memory_mb)

    async def load(self) -> None:
        """Nothing: as long as no image comes, nothing is loaded."""

    async def describe(self, image: Image, seconds: float) -> Told:
        """The text, marked as what it is, and how much of it was not read."""
        try:
            read = await self._process.read(image, seconds)
        except ReaderBroke as error:
            log.warning("an image of %d x %d pixels: %s", image.width, image.height, error)
            return Told(UNREAD, "It could not be read; the server's log has the details.")
        return Told(_shown(read), _missing(read, seconds))

    async def close(self) -> None:
        """Ends the process."""
        await self._process.close()


def _shown(read: TextRead) -> str:
    if not read.text:
        why = "No text was found in it." if read.complete else "Reading it took too long."
        return f"[An image that cannot be shown here. {why}]"
    part = "" if read.complete else ", as far as it was read"
    return (
        f"[An image that cannot be shown here. The text in it{part}, read by a machine:]\n"
        f"{quoted(read.text)}\n[End of the image.]"
    )


def _missing(read: TextRead, seconds: float) -> str:
    limit = LIMIT.format(seconds=seconds)
    if read.complete:
        return ""
    if not read.texts:
        return f"Its text was not read in {limit}. Send a smaller image, or a part of it."
    return (
        f"Only {len(read.texts)} of its {read.lines} lines of text could be read in {limit}. Send "
        "it in parts to have all of them read."
    )
