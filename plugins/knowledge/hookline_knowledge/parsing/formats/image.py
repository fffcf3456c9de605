"""Pictures, through OCR."""

from __future__ import annotations

import io
import warnings
from collections.abc import Iterator
from typing import TYPE_CHECKING

from hookline import Section
from hookline_knowledge.parsing.reading import Reading
from hookline_knowledge.parsing.unreadable import Unreadable

if TYPE_CHECKING:
    from PIL import Image

FORMATS = ("PNG", "JPEG", "GIF", "BMP", "TIFF", "WEBP")

PIXELS_MAX = 40_000_000
"""Pixels of a picture; more is a bomb or needs cutting."""

TOO_LARGE = f"The picture is larger than {PIXELS_MAX // 10**6} million pixels. Make it smaller."


def read(data: bytes, reading: Reading) -> Iterator[Section]:
    """The text in a picture, or in each page of a TIFF."""
    from PIL import ImageOps

    image = _opened(data)
    pages = getattr(image, "n_frames", 1) if image.format == "TIFF" else 1
    for page in range(min(pages, reading.limits.pages)):
        image.seek(page)
        _refuse_bomb(image.size)
        text = reading.image_text(ImageOps.exif_transpose(image))
        yield Section(text, f"page {page + 1}" if pages > 1 else "")


def _opened(data: bytes) -> Image.Image:
    from PIL import Image

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", Image.DecompressionBombWarning)
        try:
            return Image.open(io.BytesIO(data), formats=FORMATS)
        except Image.DecompressionBombError as error:
            raise Unreadable(TOO_LARGE) from error


def _refuse_bomb(size: tuple[int, int]) -> None:
    if size[0] * size[1] > PIXELS_MAX:
        raise Unreadable(TOO_LARGE)
