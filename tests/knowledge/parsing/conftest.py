"""Files of all kinds, made when a test needs them, and ways to read them."""

from __future__ import annotations

import io
import zipfile
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from email.message import EmailMessage
from typing import Any

import docx
import openpyxl
import pptx
import pytest
from PIL import Image

from hookline import Section
from hookline_knowledge.parsing import Parser, ParsingSettings
from hookline_knowledge.parsing.reading import Reading


class Files:
    """Small good files; tests damage them as they like."""

    def pdf(self, *pages: str, extra: Mapping[int, str] | None = None, info: str = "") -> bytes:
        """A PDF with a line of text a page. ``extra`` replaces objects by number: 1 the catalog,
        2 the page tree, 3 the font, then two for each page: itself, and its content."""
        kids = " ".join(f"{4 + 2 * i} 0 R" for i in range(len(pages)))
        objects = {
            1: "<< /Type /Catalog /Pages 2 0 R >>",
            2: f"<< /Type /Pages /Kids [{kids}] /Count {len(pages)} >>",
            3: "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
        }
        for index, text in enumerate(pages):
            content = f"BT /F1 12 Tf 72 720 Td ({text}) Tj ET" if text else ""
            number = 4 + 2 * index
            objects[number] = (
                "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] "
                f"/Resources << /Font << /F1 3 0 R >> >> /Contents {number + 1} 0 R >>"
            )
            objects[number + 1] = f"<< /Length {len(content)} >>\nstream\n{content}\nendstream"
        return self.raw_pdf({**objects, **(extra or {})}, info)

    def raw_pdf(self, objects: Mapping[int, str], info: str = "") -> bytes:
        """A PDF of such objects, with the table that tells where they are."""
        out = bytearray(b"%PDF-1.7\n")
        table = b""
        for number in sorted(objects):
            table += f"{number} 1\n{len(out):010} 00000 n \n".encode()
            out += f"{number} 0 obj\n{objects[number]}\nendobj\n".encode("latin-1")
        start = len(out)
        out += b"xref\n0 1\n0000000000 65535 f \n" + table
        out += f"trailer\n<< /Size {max(objects) + 1} /Root 1 0 R {info} >>\n".encode()
        return bytes(out + f"startxref\n{start}\n%%EOF\n".encode())

    def docx(self, build: Callable[[Any], None]) -> bytes:
        document = docx.Document()
        build(document)
        return _saved(document)

    def pptx(self, build: Callable[[Any], None]) -> bytes:
        presentation = pptx.Presentation()
        build(presentation)
        return _saved(presentation)

    def xlsx(self, **sheets: Sequence[Sequence[object]]) -> bytes:
        book = openpyxl.Workbook()
        book.remove(book.worksheets[0])
        for name, rows in sheets.items():
            sheet = book.create_sheet(name)
            for row in rows:
                sheet.append(list(row))
        return _saved(book)

    def zip(self, parts: Mapping[str, str | bytes]) -> bytes:
        out = io.BytesIO()
        with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, content in parts.items():
                archive.writestr(name, content)
        return out.getvalue()

    def changed(self, data: bytes, parts: Mapping[str, str | bytes]) -> bytes:
        """An archive with some of its parts replaced."""
        return self.zip({**self.parts(data), **parts})

    def parts(self, data: bytes) -> dict[str, bytes]:
        """What an archive holds."""
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            return {name: archive.read(name) for name in archive.namelist()}

    def epub(self, *chapters: str, more: Mapping[str, str] | None = None) -> bytes:
        items = "".join(
            f'<item id="c{i}" href="text/c%20{i}.xhtml" media-type="application/xhtml+xml"/>'
            for i in range(len(chapters))
        )
        links = "".join(
            f'<li><a href="text/c%20{i}.xhtml">Part {i + 1}</a></li>' for i in range(len(chapters))
        )
        order = "".join(f'<itemref idref="c{i}"/>' for i in range(len(chapters)))
        return self.zip(
            {
                "mimetype": "application/epub+zip",
                "META-INF/container.xml": (
                    '<container xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles>'
                    '<rootfile full-path="OEBPS/book.opf"/></rootfiles></container>'
                ),
                "OEBPS/book.opf": (
                    '<package xmlns="http://www.idpf.org/2007/opf"><metadata><title '
                    'xmlns="http://purl.org/dc/elements/1.1/">A Book</title></metadata><manifest>'
                    '<item id="n" href="nav.xhtml" properties="nav" '
                    f'media-type="application/xhtml+xml"/>{items}</manifest>'
                    f"<spine>{order}</spine></package>"
                ),
                "OEBPS/nav.xhtml": f"<html><body><nav><ol>{links}</ol></nav></body></html>",
                **{f"OEBPS/text/c {i}.xhtml": page for i, page in enumerate(chapters)},
                **(more or {}),
            }
        )

    def eml(self, text: str = "Good morning.", **headers: str) -> EmailMessage:
        mail = EmailMessage()
        mail["Subject"] = headers.get("subject", "Rent")
        mail["From"] = headers.get("sender", "Ann <ann@example.com>")
        mail["To"] = "bob@example.com"
        mail["Date"] = "Mon, 02 Nov 2026 09:00:00 +0000"
        mail.set_content(text)
        return mail

    def png(self, width: int = 40, height: int = 20) -> bytes:
        out = io.BytesIO()
        Image.new("RGB", (width, height), "white").save(out, "PNG")
        return out.getvalue()


def _saved(document: Any) -> bytes:
    out = io.BytesIO()
    document.save(out)
    return out.getvalue()


class Read:
    """Reads files in this process; pictures say what the test wants."""

    def __init__(self) -> None:
        self.limits = ParsingSettings()
        self.picture = "TEXT OF A PICTURE"
        self.pictures: list[tuple[int, int]] = []
        self.reading = self._new()

    def _new(self) -> Reading:
        return Reading(self.limits, self._image_text)

    def _image_text(self, image: Image.Image, limits: ParsingSettings) -> str:
        self.pictures.append(image.size)
        return self.picture

    def __call__(
        self, data: bytes | str, name: str, media_type: str | None = None
    ) -> list[Section]:
        self.reading = self._new()
        data = data.encode() if isinstance(data, str) else data
        return list(self.reading.sections(data, name, media_type))

    def limit(self, **limits: Any) -> None:
        self.limits = ParsingSettings(**limits)


@pytest.fixture(scope="session")
def files() -> Files:
    return Files()


@pytest.fixture
def read() -> Read:
    return Read()


@pytest.fixture
async def parser() -> AsyncIterator[Parser]:
    """One process that reads files, as the server uses them."""
    parser = Parser(ParsingSettings(workers=1, seconds=30, ocr=False))
    yield parser
    await parser.close()
