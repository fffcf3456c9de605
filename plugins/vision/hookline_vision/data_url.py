"""Where an image is said to be: only a base64 ``data:`` URL is taken, nothing is ever fetched."""

from __future__ import annotations

from dataclasses import dataclass, field

from hookline_vision.refusal import Refused

FORMATS = ("PNG", "JPEG", "WEBP", "GIF", "BMP", "TIFF")
"""The formats that are read, by Pillow's names."""

MEDIA_TYPES = {
    "image/png": "PNG",
    "image/x-png": "PNG",
    "image/apng": "PNG",
    "image/jpeg": "JPEG",
    "image/jpg": "JPEG",
    "image/pjpeg": "JPEG",
    "image/webp": "WEBP",
    "image/gif": "GIF",
    "image/bmp": "BMP",
    "image/x-bmp": "BMP",
    "image/x-ms-bmp": "BMP",
    "image/tiff": "TIFF",
    "image/x-tiff": "TIFF",
}
"""Names of the formats in the wild, not only the registered ones."""

HEADER_MAX = 200
"""Characters before the comma of a data URL."""

EXAMPLE = "data:image/png;base64,…"


@dataclass(frozen=True, slots=True)
class DataUrl:
    """An image in a URL: the format that is declared, and the base64 text, not yet looked at."""

    format: str
    data: str = field(repr=False)

    @property
    def size(self) -> int:
        """About how many bytes the image has."""
        return len(self.data) * 3 // 4

    def text(self) -> bytes:
        """The base64 text as bytes. Raises Refused where it cannot be base64."""
        try:
            return self.data.encode("ascii")
        except UnicodeEncodeError as error:
            raise Refused("its data holds characters that base64 does not have.") from error


def parse(url: str) -> DataUrl:
    """The parts of a data URL (RFC 2397); scheme, type and ``base64`` in any case, parameters such
    as ``charset`` are fine. Raises Refused."""
    if url[:5].lower() != "data:":
        raise Refused(_no_data(url))
    comma = url.find(",", 5, HEADER_MAX)
    if comma < 0:
        raise Refused(f"its URL has no comma before the data. Write it like {EXAMPLE}")
    declared, *parameters = (part.strip().lower() for part in url[5:comma].split(";"))
    if not parameters or parameters[-1] != "base64":
        raise Refused(f"its URL does not say that it is base64. Write it like {EXAMPLE}")
    if declared not in MEDIA_TYPES:
        named = f"'{declared[:40]}' is" if declared else "an image without a type is"
        raise Refused(f"{named} not read. Send one of {', '.join(FORMATS)}, like {EXAMPLE}")
    return DataUrl(MEDIA_TYPES[declared], url[comma + 1 :])


def _no_data(url: str) -> str:
    scheme, colon, _ = url[:40].partition(":")
    what = f"'{scheme.strip().lower()}:' addresses" if colon else "addresses without a scheme"
    return f"{what} are not read, and nothing is fetched. Send the image itself, like {EXAMPLE}"
