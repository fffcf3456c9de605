"""What kind of file bytes are: their content says it first, then name and declared type."""

from __future__ import annotations

import io
import re
import zipfile

from hookline_knowledge.parsing import kinds
from hookline_knowledge.parsing.charset import decode, is_binary
from hookline_knowledge.parsing.kinds import Kind, declared, extension, named
from hookline_knowledge.parsing.unreadable import Unreadable

SAMPLE = 4096
"""Bytes at the beginning of a text that tell its kind."""

PDF_HEADER_WITHIN = 1024
"""Bytes that may stand before a PDF's header, as its readers accept."""

IMAGES = (
    (b"\x89PNG\r\n\x1a\n", kinds.PNG),
    (b"\xff\xd8\xff", kinds.JPEG),
    (b"GIF87a", kinds.GIF),
    (b"GIF89a", kinds.GIF),
    (b"II*\0", kinds.TIFF),
    (b"MM\0*", kinds.TIFF),
)

UNSUPPORTED = (
    (b"{\\rtf", "a rich text (RTF) file; save it as .docx or PDF"),
    (b"%!PS", "a PostScript file; save it as PDF"),
    (b"\x1f\x8b", "a gzip archive; unpack it first"),
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive; unpack it first"),
    (b"Rar!\x1a", "a RAR archive; unpack it first"),
    (b"BZh", "a bzip2 archive; unpack it first"),
    (b"\xfd7zXZ\0", "an xz archive; unpack it first"),
    (b"\x28\xb5\x2f\xfd", "a zstd archive; unpack it first"),
    (b"\x7fELF", "a program"),
    (b"MZ", "a program"),
    (b"SQLite format 3\0", "an SQLite database"),
    (b"ID3", "a sound file"),
    (b"OggS", "a sound file"),
    (b"fLaC", "a sound file"),
    (b"RIFF", "a sound or video file"),
)
"""Beginnings of files that are known and not read."""

ZIP = (b"PK\x03\x04", b"PK\x05\x06")
OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
OLE_KINDS = (
    ("WordDocument", "an old Word document (.doc); save it as .docx"),
    ("Workbook", "an old Excel workbook (.xls); save it as .xlsx"),
    ("PowerPoint Document", "an old PowerPoint presentation (.ppt); save it as .pptx"),
    ("__substg1.0", "an Outlook message (.msg); save it as .eml"),
)
"""Names of streams in Microsoft's old container, and what they tell."""

ZIP_KINDS = (
    ("word/", kinds.DOCX),
    ("ppt/", kinds.PPTX),
    ("xl/", kinds.XLSX),
    ("META-INF/container.xml", kinds.EPUB),
)

TEXTS = (kinds.HTML, kinds.MARKDOWN, kinds.CSV, kinds.JSON, kinds.EML, kinds.TEXT)

STRICT = (kinds.CSV, kinds.JSON, kinds.EML)
"""Kinds of text that an HTML page cannot be in earnest."""

_HTML = re.compile(
    r"\s*(<\?xml[^>]*>\s*)?(<!--(?:(?!-->).)*-->\s*)*<(!doctype\s+html|html[\s>])", re.I | re.S
)
_MAIL = re.compile(
    r"(?:(?:From|To|Subject|Date|Received|Return-Path|Message-ID|MIME-Version|Delivered-To|"
    r"Content-Type|X-[\w-]+):[^\n]*\n(?:[ \t][^\n]*\n)*){3}",
    re.I,
)


def detect(data: bytes, name: str, media_type: str | None) -> Kind:
    """The kind of a file. Raises Unreadable where nobody reads it, or where it is not what its
    name says."""
    if not data.strip(b"\0 \t\r\n"):
        raise Unreadable("The file is empty.")
    said = named(name) or declared(media_type)
    found = _binary(data) or _text(data, said, extension(name))
    claim = f"claims to be {said.label}, but it " if said is not None else ""
    if isinstance(found, str):
        raise Unreadable(f"The file {claim}is {found}.", "unsupported_file")
    if said is not None and not _alike(said, found):
        raise Unreadable(
            f"The file {claim}is {found.label}. Give it a name that ends in "
            f".{found.extensions[0]}, or the content that was meant."
        )
    return found


def _alike(said: Kind, found: Kind) -> bool:
    if found is kinds.HTML and said in STRICT:
        return False
    return said.reader == found.reader or (said in TEXTS and found in TEXTS)


def _binary(data: bytes) -> Kind | str | None:
    """The kind of a file that is no text, or in words what it is where nobody reads it."""
    if b"%PDF-" in data[:PDF_HEADER_WITHIN]:
        return kinds.PDF
    if data.startswith(ZIP):
        return _zipped(data)
    if data.startswith(OLE):
        return _old_office(data)
    return _image(data) or _unsupported(data)


def _image(data: bytes) -> Kind | None:
    for magic, kind in IMAGES:
        if data.startswith(magic):
            return kind
    if data.startswith(b"RIFF") and data[8:12] == b"WEBP":
        return kinds.WEBP
    return kinds.BMP if data.startswith(b"BM") and data[6:10] == bytes(4) else None


def _unsupported(data: bytes) -> str | None:
    binary = is_binary(data)
    for magic, label in UNSUPPORTED:
        # A text may begin with the letters of a magic that is a word.
        if data.startswith(magic) and (binary or not magic.isalnum()):
            return label
    return "neither text nor of a kind that is read" if binary else None


def _zipped(data: bytes) -> Kind | str:
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            names = archive.namelist()
    except Exception as error:  # its own checks fail in many ways
        raise Unreadable(f"The file is damaged: {error}.") from error
    if "xl/workbook.bin" in names:
        return "a binary Excel workbook (.xlsb); save it as .xlsx"
    for beginning, kind in ZIP_KINDS:
        if any(name.startswith(beginning) for name in names):
            return kind
    if "content.xml" in names:
        return "an OpenDocument file; save it as .docx, .xlsx, .pptx or PDF"
    return "a zip archive; unpack it first"


def _old_office(data: bytes) -> str:
    if "EncryptedPackage".encode("utf-16-le") in data:
        raise Unreadable("The file is encrypted. Save it without a password.")
    for stream, label in OLE_KINDS:
        if stream.encode("utf-16-le") in data:
            return label
    return "of an old Office kind that is not read"


def _text(data: bytes, said: Kind | None, ending: str) -> Kind:
    """The kind of a text: what it plainly is, else what it is said to be."""
    head = decode(data[:SAMPLE])
    plain = said not in TEXTS or said is kinds.TEXT
    if _HTML.match(head) and (plain or said in STRICT):
        return kinds.HTML
    if said is not None and not plain:
        return said
    if _MAIL.match(head):
        return kinds.EML
    return kinds.JSON if not ending and head.lstrip()[:1] in ("{", "[") else kinds.TEXT
