"""The decoder: a process of its own that makes pixels of encoded images, and can be stopped.

A hostile image may keep a codec busy for very long, use up the memory or crash it. In a process it
can do none of that to the server. This file imports nothing of Hookline, so that it starts quickly.

Run as a script: a line of JSON and the base64 text in, a line of JSON and the pixels out, until
there is no more. See `Request` and `serve`.
"""

from __future__ import annotations

import binascii
import contextlib
import io
import json
import sys
import warnings
from typing import Any, BinaryIO, NamedTuple, cast
from urllib.parse import unquote_to_bytes

from PIL import Image, ImageOps, UnidentifiedImageError

MEGAPIXEL = 1_000_000

MOST_UNEVEN = 100
"""Times that a side may be as long as the other: encoders refuse what is next to a line."""

SAME_FORMAT = {"MPO": "JPEG"}
"""Formats that Pillow tells apart and media types do not: photographs of telephones hold several
pictures, and are JPEG."""


class Unreadable(Exception):
    """The image cannot be used; the text says why and what to do."""


class Request(NamedTuple):
    """What to decode: ``length`` bytes of base64 follow.

    ``format`` is Pillow's name of the declared type, ``formats`` are all that are taken. More than
    ``max_pixels`` are refused; a picture with a side longer than ``side`` is scaled down to it.
    """

    length: int
    format: str
    formats: tuple[str, ...]
    max_pixels: int
    side: int


def decode(text: bytes, request: Request) -> Image.Image:
    """The picture, upright, on white, as RGB with 8 bits each. Raises Unreadable."""
    try:
        image = _opened(_bytes(text), request)
        image.draft(None, (2 * request.side, 2 * request.side))  # a JPEG can be read at a fraction
        image.load()
        image = _on_white(_eight_bits(_upright(image)))
        image.thumbnail((request.side, request.side), Image.Resampling.LANCZOS, reducing_gap=3.0)
    except MemoryError as error:
        raise Unreadable("it needs too much memory. Save it anew with an image editor.") from error
    except Unreadable:
        raise
    except Exception as error:  # codecs raise nearly anything for a damaged file
        raise Unreadable(f"it is damaged, or only a part of it came: {_brief(error)}") from error
    return image


def _bytes(text: bytes) -> bytes:
    """The bytes of a data URL's text: base64 as browsers take it, so white space may be in it and
    its padding may be missing. Raises Unreadable."""
    if b"%" in text:
        text = unquote_to_bytes(text)
    try:
        return binascii.a2b_base64(text, strict_mode=True)
    except binascii.Error:
        text = text.translate(None, b" \t\n\f\r")
    if not text.endswith(b"="):
        text += b"=" * (-len(text) % 4)
    try:
        return binascii.a2b_base64(text, strict_mode=True)
    except binascii.Error as error:
        raise Unreadable(
            f"its data is not valid base64 (letters, digits, '+' and '/'): {_brief(error)}"
        ) from error


def _opened(data: bytes, request: Request) -> Image.Image:
    """Reads no further than the header. Raises Unreadable."""
    if not data:
        raise Unreadable("it is empty.")
    try:
        image = Image.open(io.BytesIO(data), formats=request.formats)
    except UnidentifiedImageError as error:
        known = ", ".join(request.formats)
        raise Unreadable(f"its data is none of {known}, or its beginning is damaged.") from error
    actual = SAME_FORMAT.get(image.format or "", image.format)
    if actual != request.format:
        raise Unreadable(f"it is declared as {request.format} and is {actual}. Declare what it is.")
    _check_size(image.size, request.max_pixels)
    return image


def _check_size(size: tuple[int, int], max_pixels: int) -> None:
    width, height = size
    if width * height > max_pixels:
        raise Unreadable(
            f"it has {width} x {height} pixels, more than the {_megapixels(max_pixels)} that "
            "are read. Scale it down."
        )
    if width < 1 or height < 1:
        raise Unreadable("it has no pixels.")
    if max(width, height) > MOST_UNEVEN * min(width, height):
        raise Unreadable(
            f"it has {width} x {height} pixels, and one side may be at most {MOST_UNEVEN} times "
            "the other. Cut it."
        )


def _megapixels(count: int) -> str:
    return f"{count / MEGAPIXEL:g} megapixel{'' if count == MEGAPIXEL else 's'}"


def _upright(image: Image.Image) -> Image.Image:
    """Turned as its EXIF orientation says; as it is where that cannot be read."""
    try:
        return ImageOps.exif_transpose(image)
    except Exception:  # whatever nonsense EXIF holds, the picture itself was readable
        return image


def _eight_bits(image: Image.Image) -> Image.Image:
    """Modes of more bits scaled to 8: a plain conversion would make all that is not black white."""
    if image.mode.startswith("I;16"):
        big_endian = image.mode == "I;16B"
        high_bytes = image.tobytes()[0 if big_endian else 1 :: 2]
        return Image.frombytes("L", image.size, high_bytes)
    if image.mode in ("I", "F"):
        high = cast(float, image.getextrema()[1])
        usual = (1, 255, 65535) if image.mode == "F" else (255, 65535)
        white = next((white for white in usual if high <= white), high)
        return image.point(lambda value: value * (255 / white) + 0).convert("L")
    return image


def _on_white(image: Image.Image) -> Image.Image:
    if not image.has_transparency_data:
        return image.convert("RGB")
    clear = image.convert("RGBA")
    white = Image.new("RGB", image.size, "white")
    white.paste(clear, mask=clear)
    return white


def _brief(error: Exception) -> str:
    return " ".join(f"{error or type(error).__name__}".split())[:200]


def serve(requests: BinaryIO, answers: BinaryIO) -> None:
    """Answers until there are no more requests.

    An answer is ``{"refused": reason}``, or ``{"width", "height"}`` and that many pixels of three
    bytes, row by row.
    """
    for line in requests:
        request = Request(**json.loads(line))
        text = requests.read(request.length)
        try:
            image = decode(text, request)
        except Unreadable as reason:
            _say(answers, {"refused": str(reason)})
        else:
            _say(answers, {"width": image.width, "height": image.height}, image.tobytes())


def _say(answers: BinaryIO, about: dict[str, Any], pixels: bytes = b"") -> None:
    answers.write(json.dumps(about).encode() + b"\n")
    answers.write(pixels)
    answers.flush()


def main(memory: int) -> None:
    """Limits the memory to so many bytes of address space, then serves."""
    Image.MAX_IMAGE_PIXELS = None  # `_check_size` does that, before anything is decoded
    warnings.simplefilter("ignore")
    Image.preinit()
    with contextlib.suppress(ImportError):
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    serve(sys.stdin.buffer, sys.stdout.buffer)


if __name__ == "__main__":
    main(int(sys.argv[1]))
