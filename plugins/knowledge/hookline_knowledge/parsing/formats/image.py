"""Pictures, through OCR."""

from __future__ import annotations

import io
import warnings
from collections.abc import Iterator

from hookline import Section
from hookline_knowledge.parsing.reading import Reading
from hookline_knowledge.parsing.unreadable import Unreadable

FORMATS = ("PNG", "JPEG", "GIF", "BMP", "TIFF", "WEBP")

PIXELS_MAX = 40_000_000
"""Pixels of a picture; more is a bomb or needs cutting."""


def read(data: bytes, reading: Reading) -> Iterator[Section]:
    """The text in a picture, or in each page of a TIFF."""
    from PIL import Image, ImageOps

    with warnings.catch_warnings():
        warnings.simplefilter("error", Image.DecompressionBombWarning)
        image = Image.open(io.BytesIO(data), formats=FORMATS)
    pages = getattr(image, "n_frames", 1) if image.format == "TIFF" else 1
    for page in range(pages):
        image.seek(page)
        width, height = image.size
        if width * height > PIXELS_MAX:
            raise Unreadable(
                f"The picture has {width} x {height} pixels; at most {PIXELS_MAX:,} are read."
            )
        text = reading.image_text(ImageOps.exif_transpose(image))
        yield Section(text, f"page {page + 1}" if pages > 1 else "")
