"""PDF, page by page; pages that are pictures through OCR."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from hookline import Section
from hookline_knowledge.parsing.charset import clean
from hookline_knowledge.parsing.reading import Reading
from hookline_knowledge.parsing.unreadable import Unreadable, too_much

if TYPE_CHECKING:
    from PIL import Image
    from pypdfium2 import PdfDocument, PdfPage

OCR_DPI = 200
OCR_PIXELS = 20_000_000
"""Pixels of the picture of a page, which may be as large as a hall."""

NEEDS_PASSWORD = 4
"""PDFium's code for a document that a password locks."""

HYPHENS = ("\ufffe", "\x02")
"""What PDFium writes where a word was broken at the end of a line."""

_WRITERS_OWN = re.compile(r"^\s*(Microsoft \w+ - |untitled\s*$|\(anonymous\)\s*$)", re.I)
"""What programs write as a title by themselves."""


def read(data: bytes, reading: Reading) -> Iterator[Section]:
    """A section for each page, then the files that are attached."""
    with _opened(data) as document:
        pages = len(document)
        if not pages:
            raise Unreadable("The PDF has no pages.")
        if pages > reading.limits.pages:
            raise too_much("page", reading.limits.pages, "pages")
        reading.title = _WRITERS_OWN.sub("", document.get_metadata_value("Title"))
        yield from _Pages(document, reading).sections()
        yield from _attachments(document, reading)


def _opened(data: bytes) -> PdfDocument:
    from pypdfium2 import PdfDocument, PdfiumError

    try:
        document = PdfDocument(data)
    except PdfiumError as error:
        if error.err_code == NEEDS_PASSWORD:
            raise Unreadable(
                "The PDF is encrypted and opens with a password only. Save it without one."
            ) from error
        raise Unreadable("The PDF is damaged and cannot be opened.") from error
    document.init_forms()
    return document


class _Pages:
    """The pages, and the numbers of those that gave no text by the reason."""

    def __init__(self, document: PdfDocument, reading: Reading) -> None:
        self._document = document
        self._reading = reading
        self._missing: dict[str, list[int]] = {}

    def sections(self) -> Iterator[Section]:
        from pypdfium2 import PdfiumError

        for number in range(1, len(self._document) + 1):
            try:
                text = self._text(number)
            except PdfiumError:
                self._missing.setdefault("The page is damaged.", []).append(number)
            except Unreadable as error:
                self._missing.setdefault(error.reason, []).append(number)
            else:
                yield Section(text, f"page {number}")
        for reason, numbers in self._missing.items():
            what = "page" if len(numbers) == 1 else "pages"
            self._reading.notes.append(f"Nothing was read of {what} {_ranges(numbers)}: {reason}")

    def _text(self, number: int) -> str:
        page = self._document[number - 1]
        try:
            if self._document.formenv is not None:
                page.flatten()  # what was filled into a form becomes text of the page
                page.close()
                page = self._document[number - 1]
            text = page.get_textpage().get_text_bounded()
            if not text.strip() and next(page.get_objects(max_depth=1), None) is not None:
                return self._reading.image_text(_picture(page))
            return _joined(text)
        finally:
            page.close()


def _joined(text: str) -> str:
    """Text of a page with the words whole that were broken at the end of a line."""
    for hyphen in HYPHENS:
        text = text.replace(f"{hyphen}\r\n", "").replace(hyphen, "")
    return clean(text)


def _picture(page: PdfPage) -> Image.Image:
    width, height = page.get_size()
    scale = OCR_DPI / 72
    if width * height * scale**2 > OCR_PIXELS:
        scale = (OCR_PIXELS / (width * height)) ** 0.5
    picture: Image.Image = page.render(scale=scale).to_pil()
    return picture


def _attachments(document: PdfDocument, reading: Reading) -> Iterator[Section]:
    from pypdfium2 import PdfiumError

    for index in range(document.count_attachments()):
        try:
            attachment = document.get_attachment(index)
            name, data = attachment.get_name(), bytes(attachment.get_data())
        except PdfiumError:
            reading.notes.append(f"The attachment {index + 1} is damaged.")
        else:
            yield from reading.attached(data, name, None)


def _ranges(numbers: list[int]) -> str:
    """``1-3, 7`` for 1, 2, 3, 7."""
    ranges: list[list[int]] = []
    for number in numbers:
        if ranges and number == ranges[-1][1] + 1:
            ranges[-1][1] = number
        else:
            ranges.append([number, number])
    return ", ".join(f"{a}" if a == b else f"{a}-{b}" for a, b in ranges)
