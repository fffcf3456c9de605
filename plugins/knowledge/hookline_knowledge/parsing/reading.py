"""One file while it is read: its limits, and what its reader finds out besides the text."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import TYPE_CHECKING

from hookline import Section
from hookline_knowledge.parsing.detect import detect
from hookline_knowledge.parsing.settings import ParsingSettings
from hookline_knowledge.parsing.unreadable import Unreadable, out_of_memory
from hookline_knowledge.wording import counted

if TYPE_CHECKING:
    from PIL import Image

DEPTH_MAX = 3
"""How deep files may lie in files: a PDF in a mail in a mail."""

FORMATS = "hookline_knowledge.parsing.formats"


class Reading:
    """What the readers of `formats` are given.

    They set ``title`` where the file says one, and leave a note of everything that is not in the
    text although it is in the file.
    """

    def __init__(
        self,
        limits: ParsingSettings,
        read_image: Callable[[Image.Image, ParsingSettings], str],
        depth: int = 0,
    ) -> None:
        self.limits = limits
        self.title = ""
        self.media_type = ""
        self.notes: list[str] = []
        self._read_image = read_image
        self._depth = depth
        self._images = 0
        self._attachments = 0

    def sections(self, data: bytes, name: str, media_type: str | None) -> Iterator[Section]:
        """A file's sections, as its kind's reader gives them. Raises Unreadable."""
        kind = detect(data, name, media_type)
        self.media_type = kind.media_type
        try:
            yield from import_module(f"{FORMATS}.{kind.reader}").read(data, self)
        except Unreadable:
            raise
        except ImportError as error:
            raise Unreadable(
                f"Reading {kind.label} needs '{error.name}'; install it with: "
                "pip install 'hookline[knowledge]'.",
                "unsupported_file",
            ) from error
        except RecursionError as error:
            raise Unreadable("The file is nested too deeply.") from error
        except MemoryError as error:
            raise Unreadable(out_of_memory(self.limits)) from error
        except Exception as error:  # the libraries fail in many ways on damaged files
            raise Unreadable(f"The file is damaged: {_brief(error)}.") from error

    def image_text(self, image: Image.Image) -> str:
        """The text in a picture. Raises Unreadable where it cannot be read."""
        if self._images >= self.limits.ocr_pages:
            raise Unreadable(
                f"Only {counted(self.limits.ocr_pages, 'picture')} of a file may be read, see "
                "ocr_pages in [plugin.knowledge.parsing]."
            )
        self._images += 1
        return self._read_image(image, self.limits)

    def attached(self, data: bytes, name: str, media_type: str | None) -> Iterator[Section]:
        """The sections of a file inside of this one; a note where it cannot be read."""
        self._attachments += 1
        if self._depth >= DEPTH_MAX or self._attachments > self.limits.attachments:
            self.notes.append(f"{name}: too many files inside of the file.")
            return
        inner = Reading(self.limits, self._read_image, self._depth + 1)
        try:
            for section in inner.sections(data, name, media_type):
                place = f"{name}, {section.location}" if section.location else name
                yield Section(section.text, place)
        except Unreadable as error:
            self.notes.append(f"{name}: {error.reason}")
        self.notes += [f"{name}: {note}" for note in inner.notes]


def _brief(error: Exception) -> str:
    said = re.sub(r"<[^<>]* object at 0x[0-9a-f]+>", "", str(error))  # says nothing to people
    said = " ".join(said.split())[:200].rstrip(".")
    return f"{type(error).__name__}: {said}" if said else type(error).__name__
