"""PDFs, good and odd: text with its page, or a reason; never anything else."""

from __future__ import annotations

import io
import re
import zlib
from typing import Any

import pypdfium2
import pytest

from hookline_knowledge.parsing.formats.pdf import _ranges
from hookline_knowledge.parsing.unreadable import Unreadable

PICTURE = (
    "<< /Type /XObject /Subtype /Image /Width 1 /Height 1 /ColorSpace /DeviceGray "
    "/BitsPerComponent 8 /Length 1 >>\nstream\n\x80\nendstream"
)


def _content(text: str) -> str:
    return f"<< /Length {len(text)} >>\nstream\n{text}\nendstream"


def _page(more: str = "", contents: str = "5 0 R") -> str:
    return (
        "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents "
        f"{contents} /Resources << /Font << /F1 3 0 R >> /XObject << /I 9 0 R >> >> {more} >>"
    )


def test_a_section_for_each_page(read: Any, files: Any) -> None:
    sections = read(files.pdf("First", "", "Third"), "a.pdf")
    assert [(s.location, s.text) for s in sections] == [
        ("page 1", "First"),
        ("page 2", ""),
        ("page 3", "Third"),
    ]
    assert read.reading.notes == []


def test_scanned_pages_are_read_by_ocr(read: Any, files: Any) -> None:
    scan = {4: _page(), 5: _content("q 612 0 0 792 0 0 cm /I Do Q"), 9: PICTURE}
    first, second = read(files.pdf("", "Typed", extra=scan), "a.pdf")
    assert (first.location, first.text) == ("page 1", "TEXT OF A PICTURE")
    assert second.text == "Typed"
    assert read.pictures == [(1700, 2200)]


def test_pages_that_are_pictures_are_told_where_there_is_no_ocr(read: Any, files: Any) -> None:
    read.limit(ocr_pages=1)
    scan = {9: PICTURE}
    for number in (4, 6, 8, 10):
        scan |= {number: _page(contents="19 0 R")}
    scan[19] = _content("q 612 0 0 792 0 0 cm /I Do Q")
    sections = read(files.pdf("", "", "", "", "Typed", extra=scan), "a.pdf")
    assert [s.location for s in sections] == ["page 1", "page 5"]
    assert read.reading.notes == [
        "Nothing was read of pages 2-4: Only 1 picture of a file may be read, see ocr_pages in "
        "[plugin.knowledge.parsing]."
    ]


def test_the_picture_of_a_page_as_large_as_a_hall_is_small(read: Any, files: Any) -> None:
    page = _page().replace("[0 0 612 792]", "[0 0 14400 14400]")
    scan = {4: page, 5: _content("q 600 0 0 600 0 0 cm /I Do Q"), 9: PICTURE}
    read(files.pdf("", extra=scan), "a.pdf")
    ((width, height),) = read.pictures
    assert width * height < 20_100_000


def test_broken_words_are_put_together(read: Any, files: Any) -> None:
    content = "BT /F1 12 Tf 72 720 Td (A micro-) Tj 0 -14 Td (kernel server) Tj ET"
    (section,) = read(files.pdf("", extra={5: _content(content)}), "a.pdf")
    assert section.text == "A microkernel server"


def test_what_was_filled_into_a_form_is_read(read: Any, files: Any) -> None:
    look = "BT /F1 12 Tf 2 5 Td (Filled in) Tj ET"
    extra = {
        1: "<< /Type /Catalog /Pages 2 0 R /AcroForm << /Fields [10 0 R] >> >>",
        4: _page("/Annots [10 0 R]"),
        10: "<< /Type /Annot /Subtype /Widget /FT /Tx /T (name) /V (Filled in) /F 4 "
        "/Rect [100 600 300 620] /AP << /N 11 0 R >> >>",
        11: "<< /Type /XObject /Subtype /Form /BBox [0 0 200 20] /Resources << /Font << /F1 3 0 R "
        f">> >> /Length {len(look)} >>\nstream\n{look}\nendstream",
    }
    (section,) = read(files.pdf("Name:", extra=extra), "form.pdf")
    assert section.text.split() == ["Name:", "Filled", "in"]


def test_attached_files_are_read(read: Any, files: Any) -> None:
    document = pypdfium2.PdfDocument(files.pdf("Letter"))
    document.new_attachment("notes.txt").set_data(b"one\ntwo")
    document.new_attachment("a.bin").set_data(b"\0\1\2\3")
    out = io.BytesIO()
    document.save(out)
    document.close()
    sections = read(out.getvalue(), "a.pdf")
    assert [(s.location, s.text) for s in sections] == [
        ("page 1", "Letter"),
        ("notes.txt, lines 1-2", "one\ntwo"),
    ]
    assert read.reading.notes[0].startswith("a.bin: ")


@pytest.mark.parametrize(
    ("written", "title"),
    [
        ("The lease", "The lease"),
        ("Microsoft Word - Lease.docx", "Lease.docx"),
        ("untitled", ""),
        ("Untitled matters", "Untitled matters"),
    ],
)
def test_its_title_is_taken(read: Any, files: Any, written: str, title: str) -> None:
    data = files.pdf("x", extra={9: f"<< /Title ({written}) >>"}, info="/Info 9 0 R")
    read(data, "a.pdf")
    assert read.reading.title == title


@pytest.mark.parametrize(
    ("numbers", "text"), [([3], "3"), ([1, 2, 3, 7], "1-3, 7"), ([2, 4, 5], "2, 4-5")]
)
def test_ranges_of_pages(numbers: list[int], text: str) -> None:
    assert _ranges(numbers) == text


class Odd:
    """Odd PDFs by name, each with the text or the reason that it must give."""

    def __init__(self, files: Any) -> None:
        self.files = files
        self.good: bytes = files.pdf("Hello")

    def cases(self) -> dict[str, tuple[bytes, str]]:
        pdf, good = self.files.pdf, self.good
        shown = {
            "good": good,
            "rubbish before the header": b"rubbish\n" * 20 + good,
            "rubbish behind the end": good + b"\0rubbish" * 1000,
            "no table of objects": good.replace(b"xref\n0 1", b"oops\n0 1"),
            "wrong table of objects": good.replace(b"00000 n", b"00007 n"),
            "wrong place of the table": good.replace(b"startxref\n", b"startxref\n9"),
            "no end": good[:-20],
            "unheard-of version": good.replace(b"%PDF-1.7", b"%PDF-9.9"),
            "line ends of a Mac": good.replace(b"\n", b"\r"),
            "wrong count of pages": pdf("Hello").replace(b"/Count 1", b"/Count 7"),
            "pages without end": pdf("Hello").replace(b"/Count 1", b"/Count 999999999"),
            "negative count of pages": pdf("Hello").replace(b"/Count 1", b"/Count -1"),
            "a tree of pages that holds itself": pdf(
                "Hello", extra={2: "<< /Type /Pages /Kids [4 0 R 2 0 R] /Count 2 >>"}
            ),
            "rotated": pdf("Hello", extra={4: _page("/Rotate 90")}),
            "rotated by nonsense": pdf("Hello", extra={4: _page("/Rotate 77")}),
            "no font": pdf("Hello", extra={3: "null"}),
            "no size": pdf("Hello", extra={4: _page().replace("/MediaBox [0 0 612 792]", "")}),
            "size of nothing": pdf("Hello", extra={4: _page().replace("612 792", "0 0")}),
            "wrong length of a stream": good.replace(b"/Length ", b"/Length 9"),
            "compressed": pdf("", extra={5: self._compressed("BT /F1 12 Tf (Hello) Tj ET")}),
            "an action that runs": pdf(
                "Hello",
                extra={
                    1: "<< /Type /Catalog /Pages 2 0 R /OpenAction << /S /JavaScript /JS "
                    "(app.alert\\(1\\); while\\(true\\);) >> >>"
                },
            ),
            "an address that is opened": pdf(
                "Hello",
                extra={
                    1: "<< /Type /Catalog /Pages 2 0 R /OpenAction << /S /URI /URI "
                    "(http://127.0.0.1:1/) >> >>"
                },
            ),
        }
        refused = {
            "only a header": (b"%PDF-1.7\n", "damaged"),
            "cut in its first object": (good[:40], "damaged"),
            "no table and no end": (good[: good.index(b"xref")], "damaged"),
            "no pages": (pdf(), "damaged"),
            "pages of nothing": (
                pdf("Hello", extra={2: "<< /Type /Pages /Kids [99 0 R] /Count 1 >>"}),
                "no text.*page 1: The page is damaged",
            ),
            "only pictures": (
                pdf("", extra={4: _page(), 5: _content("/I Do"), 9: PICTURE}),
                "no text in the file. Nothing was read of page 1: Reading it needs OCR",
            ),
            "no catalog": (pdf("Hello", extra={1: "null"}), "damaged"),
            "catalog of itself": (
                pdf("Hello", extra={1: "<< /Type /Catalog /Pages 1 0 R >>"}),
                "no text",
            ),
            "header alone and zeros": (b"%PDF-1.7\n" + bytes(5000), "damaged"),
            "unknown lock": (self._locked("/Filter /Unheard"), "damaged|encrypted"),
            "locked with a password": (
                self._locked(
                    "/Filter /Standard /V 1 /R 2 /Length 40 /P -4 "
                    f"/O <{'41' * 32}> /U <{'42' * 32}>"
                ),
                "encrypted",
            ),
        }
        return {name: (data, "Hello") for name, data in shown.items()} | refused

    def _locked(self, how: str) -> bytes:
        locked: bytes = self.files.pdf(
            "Hello", extra={9: f"<< {how} >>"}, info=f"/Encrypt 9 0 R /ID [<{'00' * 16}> <00>]"
        )
        return locked

    @staticmethod
    def _compressed(text: str) -> str:
        body = zlib.compress(text.encode()).decode("latin-1")
        return f"<< /Filter /FlateDecode /Length {len(body)} >>\nstream\n{body}\nendstream"


async def test_odd_pdfs_give_text_or_a_reason(parser: Any, files: Any) -> None:
    cases = Odd(files).cases()
    assert len(cases) > 30
    told = {name: await _told(parser, data) for name, (data, _) in cases.items()}
    wrong = {
        name: told[name] for name, (_, want) in cases.items() if not re.search(want, told[name])
    }
    assert not wrong


async def _told(parser: Any, data: bytes) -> str:
    try:
        document = await parser.parse(data, "odd.pdf")
    except Unreadable as error:
        return error.reason
    text: str = document.text
    return text


def test_too_many_pages_are_refused(read: Any, files: Any) -> None:
    read.limit(pages=2)
    with pytest.raises(Unreadable, match="more than 2 pages, see pages in"):
        read(files.pdf("a", "b", "c"), "a.pdf")
