"""What kind a file is: by its content first, and never only by its name."""

from __future__ import annotations

import io
import tarfile
import zipfile
from typing import Any

import pytest

from hookline_knowledge.parsing.detect import OLE, detect
from hookline_knowledge.parsing.kinds import KINDS, extension, file_name
from hookline_knowledge.parsing.unreadable import Unreadable

PAGE = b"<!-- saved -->\n<!DOCTYPE html><html><body>Not found</body></html>"


def _tar() -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        archive.addfile(tarfile.TarInfo("a.txt"))
    return out.getvalue()


@pytest.mark.parametrize(
    ("data", "name", "media_type", "found"),
    [
        (PAGE, "x", None, "text/html"),
        (PAGE, "x.txt", None, "text/html"),
        (b"plain", "x.html", None, "text/html"),
        (b"# T", "x.md", None, "text/markdown"),
        (b"# T", "x", "text/markdown; charset=utf-8", "text/markdown"),
        (b"a,b", "X.CSV", None, "text/csv"),
        (b"a,b", "x", "text/csv", "text/csv"),
        (b'{"a": 1}', "x", None, "application/json"),
        (b"[table]\na = 1", "x.toml", None, "text/plain"),
        (b"From: a\nTo: b\nSubject: c\n\nhi", "x", None, "message/rfc822"),
        (b"MZ is how it begins", "x.txt", None, "text/plain"),
        (b"plain", "x.unheard", "application/octet-stream", "text/plain"),
        (b"plain", "folder.pdf/x", None, "text/plain"),
    ],
)
def test_texts(data: bytes, name: str, media_type: str | None, found: str) -> None:
    assert detect(data, name, media_type).media_type == found


def test_files_are_known_without_a_name(files: Any) -> None:
    made = {
        "application/pdf": b"rubbish" + files.pdf("x"),
        "docx": files.docx(lambda document: None),
        "pptx": files.pptx(lambda presentation: None),
        "xlsx": files.xlsx(S=[["a"]]),
        "application/epub+zip": files.epub("<p>x</p>"),
        "image/png": files.png(),
    }
    known = {kind.extensions[0]: kind.media_type for kind in KINDS}
    for what, data in made.items():
        assert detect(data, "x", "application/octet-stream").media_type == known.get(what, what)


@pytest.mark.parametrize("name", ["a.docx", "a.png", "a.txt", "a.html", "a.csv"])
def test_a_pdf_with_another_name_is_told(files: Any, name: str) -> None:
    with pytest.raises(
        Unreadable, match=r"claims to be an? .+, but it is a PDF\. .* \.pdf"
    ) as told:
        detect(files.pdf("x"), name, None)
    assert told.value.code == "invalid_file"


@pytest.mark.parametrize("name", ["a.pdf", "a.docx", "a.jpg", "a.epub"])
def test_a_text_with_another_name_is_told(name: str) -> None:
    with pytest.raises(Unreadable, match="but it is a text"):
        detect(b"just text", name, None)


@pytest.mark.parametrize("name", ["a.csv", "a.json", "a.eml", "a.pdf"])
def test_a_page_that_came_instead_of_a_file_is_told(name: str) -> None:
    with pytest.raises(Unreadable, match="but it is an HTML page"):
        detect(PAGE, name, None)


def test_the_declared_type_counts_where_the_name_says_nothing(files: Any) -> None:
    assert detect(files.pdf("x"), "download", "application/pdf")
    with pytest.raises(Unreadable, match="claims to be a PDF, but it is an HTML page"):
        detect(PAGE, "download", "application/pdf")
    assert detect(files.pdf("x"), "a.pdf", "text/html"), "the name counts more than the type"


@pytest.mark.parametrize("data", [b"", b" \r\n\t ", bytes(100)])
@pytest.mark.parametrize("name", ["a.pdf", "a.txt", "a.docx"])
def test_empty_files(data: bytes, name: str) -> None:
    with pytest.raises(Unreadable, match="empty"):
        detect(data, name, None)


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (b"\x1f\x8b\x08\x00more", "gzip archive"),
        (b"{\\rtf1 text}", "RTF"),
        (b"%!PS-Adobe-3.0", "PostScript"),
        (b"\x7fELF\0\0", "program"),
        (b"MZ\0\0", "program"),
        (b"RIFF\0\0\0\0WAVE", "sound"),
        (OLE + "WordDocument".encode("utf-16-le"), "old Word document"),
        (OLE + "Workbook".encode("utf-16-le"), "old Excel workbook"),
        (OLE, "old Office"),
        (bytes(range(256)), "neither text nor"),
        (_tar(), "neither text nor"),
    ],
)
def test_kinds_that_are_not_read_are_named(data: bytes, told: str) -> None:
    with pytest.raises(Unreadable, match=told) as error:
        detect(data, "x", None)
    assert error.value.code == "unsupported_file"


def test_archives_are_not_read(files: Any) -> None:
    with pytest.raises(Unreadable, match="zip archive; unpack"):
        detect(files.zip({"a.txt": "x"}), "a.zip", None)
    with pytest.raises(Unreadable, match="OpenDocument"):
        detect(files.zip({"mimetype": "x", "content.xml": "x"}), "a.odt", None)
    with pytest.raises(Unreadable, match="xlsb"):
        detect(files.zip({"xl/workbook.bin": "x"}), "a.xlsb", None)
    with pytest.raises(Unreadable, match="damaged"):
        detect(files.zip({"word/document.xml": "x"})[:60], "a.docx", None)


def test_encrypted_office_files_say_so(files: Any) -> None:
    with pytest.raises(Unreadable, match="encrypted"):
        detect(OLE + "EncryptedPackage".encode("utf-16-le"), "a.docx", None)


def test_encrypted_archives_say_so(read: Any, files: Any) -> None:
    data = bytearray(files.docx(lambda document: None))
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        start = archive.start_dir
    data[start + 8] |= 1
    with pytest.raises(Unreadable, match="encrypted"):
        read(bytes(data), "a.docx")


@pytest.mark.parametrize(
    ("name", "ending", "last"),
    [
        ("a.PDF", "pdf", "a.PDF"),
        ("c:\\docs\\a.txt", "txt", "a.txt"),
        ("https://example.com/a/b.pdf?page=2#x.html", "pdf", "b.pdf"),
        ("https://example.com", "", ""),
        ("why?.txt", "txt", "why?.txt"),
        ("", "", ""),
    ],
)
def test_names_are_paths_or_addresses(name: str, ending: str, last: str) -> None:
    assert extension(name) == ending
    assert file_name(name).name == last
