"""The text in pictures and scanned pages."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from hookline import ConfigError
from hookline_knowledge.parsing.settings import ParsingSettings
from hookline_knowledge.parsing.unreadable import Unreadable

if TYPE_CHECKING:
    from PIL import Image

    from hookline.media.ocr import TextReader

OFF = "Reading it needs OCR, which is off, see ocr in [plugin.knowledge.parsing]."


class Ocr:
    """Loads the models once, when the first picture comes.

    ``begin`` is called before each picture, so that the time for it can be granted.
    """

    def __init__(self, begin: Callable[[], None]) -> None:
        self._begin = begin
        self._reader: TextReader | None = None

    def read(self, image: Image.Image, limits: ParsingSettings) -> str:
        """The text in a picture; empty where there is none. Raises Unreadable without OCR."""
        if not limits.ocr:
            raise Unreadable(OFF, "unsupported_file")
        reader = self._loaded()
        self._begin()
        return reader.read(image)

    def _loaded(self) -> TextReader:
        from hookline.media.ocr import TextReader

        if self._reader is None:
            try:
                self._reader = TextReader()
            except ConfigError as error:
                raise Unreadable(f"{error}.", "unsupported_file") from error
        return self._reader
