"""The kinds of files there are: how each is named, and which module reads it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePosixPath
from urllib.parse import urlsplit


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of file. ``reader`` is the module of `formats`; kinds that share it are alike."""

    label: str
    reader: str
    media_type: str
    extensions: tuple[str, ...]
    other_types: tuple[str, ...] = ()


OFFICE = "application/vnd.openxmlformats-officedocument"

PDF = Kind("a PDF", "pdf", "application/pdf", ("pdf",), ("application/x-pdf",))
DOCX = Kind(
    "a Word document",
    "docx",
    f"{OFFICE}.wordprocessingml.document",
    ("docx", "docm", "dotx", "dotm"),
)
PPTX = Kind(
    "a PowerPoint presentation",
    "pptx",
    f"{OFFICE}.presentationml.presentation",
    ("pptx", "pptm", "ppsx", "potx"),
)
XLSX = Kind(
    "an Excel workbook", "xlsx", f"{OFFICE}.spreadsheetml.sheet", ("xlsx", "xlsm", "xltx", "xltm")
)
EPUB = Kind("an EPUB book", "epub", "application/epub+zip", ("epub",))
PNG = Kind("a PNG image", "image", "image/png", ("png",))
JPEG = Kind("a JPEG image", "image", "image/jpeg", ("jpg", "jpeg", "jpe"))
GIF = Kind("a GIF image", "image", "image/gif", ("gif",))
BMP = Kind("a BMP image", "image", "image/bmp", ("bmp",))
TIFF = Kind("a TIFF image", "image", "image/tiff", ("tif", "tiff"))
WEBP = Kind("a WebP image", "image", "image/webp", ("webp",))
HTML = Kind(
    "an HTML page", "html", "text/html", ("html", "htm", "xhtml", "xht"), ("application/xhtml+xml",)
)
MARKDOWN = Kind(
    "a Markdown text",
    "markdown",
    "text/markdown",
    ("md", "markdown", "mdown", "mkd"),
    ("text/x-markdown",),
)
CSV = Kind("a CSV table", "csv", "text/csv", ("csv", "tsv", "tab"), ("text/tab-separated-values",))
JSON = Kind("a JSON file", "json", "application/json", ("json", "geojson", "ipynb"))
EML = Kind("a mail", "eml", "message/rfc822", ("eml", "mht", "mhtml"), ("multipart/related",))
TEXT = Kind("a text", "text", "text/plain", ("txt", "text", "log"))

KINDS = (
    *(PDF, DOCX, PPTX, XLSX, EPUB, PNG, JPEG, GIF, BMP, TIFF, WEBP),
    *(HTML, MARKDOWN, CSV, JSON, EML, TEXT),
)


def file_name(name: str) -> PurePosixPath:
    """The last part of a file's path, or of its address on the web."""
    path = urlsplit(name).path if "://" in name else name
    return PurePosixPath(PurePosixPath(path.replace("\\", "/")).name)


def extension(name: str) -> str:
    """The end of a file's name, in small letters and without the dot."""
    return file_name(name).suffix[1:].lower()


def named(name: str) -> Kind | None:
    """The kind that a name says, if it says one."""
    ending = extension(name)
    return next((kind for kind in KINDS if ending in kind.extensions), None)


def declared(media_type: str | None) -> Kind | None:
    """The kind that a media type says. ``text/plain`` says nothing: servers send it for all."""
    wanted = (media_type or "").partition(";")[0].strip().lower()
    return next(
        (
            kind
            for kind in KINDS
            if kind is not TEXT and wanted in (kind.media_type, *kind.other_types)
        ),
        None,
    )
