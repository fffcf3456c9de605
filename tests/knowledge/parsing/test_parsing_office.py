"""Word, PowerPoint, Excel and books: what is in them, and where."""

from __future__ import annotations

import datetime
import io
import zlib
from typing import Any

import pytest
from docx.oxml import parse_xml
from PIL import Image
from pptx.chart.data import CategoryChartData
from pptx.enum.chart import XL_CHART_TYPE
from pptx.util import Inches

from hookline_knowledge.parsing.unreadable import Unreadable

W = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
BOX = """<w:p {W}><w:r><mc:AlternateContent
xmlns:mc="http://schemas.openxmlformats.org/markup-compatibility/2006"><mc:Choice Requires="wps">
<w:txbxContent><w:p><w:r><w:t>In a box</w:t></w:r></w:p></w:txbxContent></mc:Choice>
<mc:Fallback><w:txbxContent><w:p><w:r><w:t>In a box</w:t></w:r></w:p></w:txbxContent></mc:Fallback>
</mc:AlternateContent></w:r></w:p>"""
CHANGED = """<w:p {W}><w:ins w:id="1" w:author="a"><w:r><w:t>new</w:t></w:r></w:ins>
<w:del w:id="2" w:author="a"><w:r><w:delText>old</w:delText></w:r></w:del></w:p>"""
CONTROL = """<w:sdt {W}><w:sdtContent><w:p><w:r><w:t>In a control</w:t></w:r></w:p></w:sdtContent>
</w:sdt>"""


def _report(document: Any) -> None:
    document.core_properties.title = "The report"
    document.add_heading("Report", 0)
    document.add_heading("Costs", 1)
    document.add_heading("Heating", 2)
    document.add_paragraph("It was cold.")
    document.add_paragraph("coal", style="List Bullet")
    table = document.add_table(2, 2)
    for cell, text in zip(table._cells, ("Month", "Price", "May", "a|b"), strict=True):
        cell.text = text
    document.add_paragraph("After the table.")
    document.add_heading("Income", 1)
    document.add_paragraph("None.")


def test_word_sections_are_located_by_their_headings(read: Any, files: Any) -> None:
    heating, income = read(files.docx(_report), "report.docx")
    assert heating.location == "Report > Costs > Heating"
    assert heating.text == (
        "# Report\n\n# Costs\n\n## Heating\n\nIt was cold.\n\n- coal\n\n"
        "| Month | Price |\n|---|---|\n| May | a\\|b |\n\nAfter the table."
    )
    assert income.location == "Report > Income"
    assert read.reading.title == "The report"


def test_word_text_is_found_wherever_it_stands(read: Any, files: Any) -> None:
    def build(document: Any) -> None:
        body = document.element.body
        for source in (BOX, CHANGED, CONTROL):
            body.insert(len(body) - 1, parse_xml(source.replace("{W}", W)))
        outer = document.add_table(1, 1).cell(0, 0)
        outer.text = "outer"
        outer.add_table(1, 1).cell(0, 0).text = "inner"

    (section,) = read(files.docx(build), "a.docx")
    assert section.text.count("In a box") == 1
    assert "new" in section.text
    assert "old" not in section.text
    assert "In a control" in section.text
    assert section.text.count("outer") == section.text.count("inner") == 1


def test_word_headings_by_outline_level_and_by_styles_of_ones_own(read: Any, files: Any) -> None:
    def build(document: Any) -> None:
        style = document.styles.add_style("Überschrift eins", 1)
        style.base_style = document.styles["Heading 1"]
        document.add_paragraph("By style", style=style)
        document.add_paragraph("text")
        paragraph = document.add_paragraph("By level")
        level = parse_xml(f'<w:outlineLvl {W} w:val="1"/>')
        paragraph._p.get_or_add_pPr().append(level)
        document.add_paragraph("more")

    sections = read(files.docx(build), "a.docx")
    assert [s.location for s in sections] == ["By style", "By style > By level"]


def test_word_footnotes_are_read(read: Any, files: Any) -> None:
    kinds = "application/vnd.openxmlformats-officedocument.wordprocessingml.footnotes+xml"
    data = files.docx(lambda document: document.add_paragraph("Body."))
    parts = files.parts(data)
    parts["word/footnotes.xml"] = (
        f"<w:footnotes {W}><w:footnote w:id='1'><w:p><w:r><w:t>See page 9.</w:t></w:r></w:p>"
        "</w:footnote></w:footnotes>"
    )
    parts["[Content_Types].xml"] = parts["[Content_Types].xml"].replace(
        b"</Types>",
        f'<Override PartName="/word/footnotes.xml" ContentType="{kinds}"/></Types>'.encode(),
    )
    relations = "word/_rels/document.xml.rels"
    parts[relations] = parts[relations].replace(
        b"</Relationships>",
        b'<Relationship Id="rId99" Target="footnotes.xml" Type="http://schemas.openxmlformats.org/'
        b'officeDocument/2006/relationships/footnotes"/></Relationships>',
    )
    sections = read(files.zip(parts), "a.docx")
    assert [(s.location, s.text) for s in sections] == [
        ("", "Body."),
        ("Footnotes", "See page 9."),
    ]


def _talk(presentation: Any) -> None:
    slide = presentation.slides.add_slide(presentation.slide_layouts[1])
    slide.placeholders[1].text = "First\nSecond"
    slide.shapes.title.text = "Why"
    slide.notes_slide.notes_text_frame.text = "Speak slowly"
    size = (0, 0, Inches(2), Inches(2))
    table = slide.shapes.add_table(1, 2, *size).table
    table.cell(0, 0).text, table.cell(0, 1).text = "left", "right"
    chart_data: Any = CategoryChartData
    figures = chart_data()
    figures.categories = ["East", "West"]
    figures.add_series("Sales", (1.5, 2))
    slide.shapes.add_chart(XL_CHART_TYPE.COLUMN_CLUSTERED, *size, figures)
    group = slide.shapes.add_group_shape()
    group.shapes.add_textbox(*size).text_frame.text = "in a group"
    empty = presentation.slides.add_slide(presentation.slide_layouts[6])
    empty.shapes.add_textbox(*size).text_frame.text = "last"


def test_slides_with_tables_charts_groups_and_notes(read: Any, files: Any) -> None:
    first, second = read(files.pptx(_talk), "talk.pptx")
    assert first.location == "slide 1"
    assert first.text.split("\n\n") == [
        "Why",
        "First\nSecond",
        "left | right",
        "Sales: East 1.5, West 2.0",
        "in a group",
        "Notes: Speak slowly",
    ]
    assert (second.location, second.text) == ("slide 2", "last")


def test_too_many_slides_are_refused(read: Any, files: Any) -> None:
    read.limit(pages=1)
    with pytest.raises(Unreadable, match="more than 1 slide, see pages"):
        read(files.pptx(_talk), "talk.pptx")


def test_rows_of_a_workbook_say_what_their_cells_mean(read: Any, files: Any) -> None:
    rows = [
        ["Price list 2026"],
        [],
        ["Name", "Price", "Since", "Sold"],
        ["Bolt", 1.5, datetime.datetime(2026, 1, 2), True],
        ["Long\nnut", 2, datetime.datetime(2026, 1, 2, 9, 30), None],
        *[[]] * 30,
        ["Late", 0.1 + 0.2],
    ]
    data = files.xlsx(Prices=rows, Empty=[], Words=[["just"], ["words"]])
    sections = read(data, "prices.xlsx")
    assert [(s.location, s.text.split("\n")) for s in sections] == [
        (
            "Prices, rows 1-5",
            [
                "Price list 2026",
                "",
                "Name | Price | Since | Sold",
                "Name: Bolt; Price: 1.5; Since: 2026-01-02; Sold: True",
                "Name: Long nut; Price: 2; Since: 2026-01-02 09:30:00",
            ],
        ),
        ("Prices, row 36", ["Name: Late; Price: 0.3"]),
        ("Words, rows 1-2", ["just", "words"]),
    ]


def test_a_sheet_that_claims_to_be_endless_is_read_to_its_end(read: Any, files: Any) -> None:
    data = files.xlsx(S=[["a", "b"], [1, 2]])
    part = "xl/worksheets/sheet1.xml"
    sheet = files.parts(data)[part].replace(b'ref="A1:B2"', b'ref="A1:XFD1048576"')
    assert b"XFD1048576" in sheet
    (section,) = read(files.changed(data, {part: sheet}), "a.xlsx")
    assert section.text == "a | b\na: 1; b: 2"


PAGE = "<html><body>{}</body></html>"


def test_a_book_is_read_in_the_order_of_its_spine(read: Any, files: Any) -> None:
    book = files.epub(PAGE.format("<h1>One</h1><p>First.</p>"), PAGE.format("<p>Second.</p>"))
    sections = read(book, "book.epub")
    assert [(s.location, s.text) for s in sections] == [
        ("Part 1 > One", "# One\n\nFirst."),
        ("Part 2", "Second."),
    ]
    assert read.reading.title == "A Book"


def test_an_encrypted_book_says_so_but_encrypted_fonts_harm_nothing(read: Any, files: Any) -> None:
    def locked(path: str) -> bytes:
        source = f"<encryption><CipherReference URI='{path}'/></encryption>"
        made: bytes = files.epub(PAGE.format("text"), more={"META-INF/encryption.xml": source})
        return made

    assert read(locked("OEBPS/font.otf"), "book.epub")
    with pytest.raises(Unreadable, match="DRM"):
        read(locked("OEBPS/text/c%200.xhtml"), "book.epub")


def test_a_book_with_a_chapter_missing(read: Any, files: Any) -> None:
    book = files.parts(files.epub(PAGE.format("one"), PAGE.format("two")))
    del book["OEBPS/text/c 0.xhtml"]
    (section,) = read(files.zip(book), "book.epub")
    assert section.text == "two"
    assert read.reading.notes == ["The chapter 1 (OEBPS/text/c 0.xhtml) is missing."]


@pytest.mark.parametrize("broken", ["META-INF/container.xml", "OEBPS/book.opf"])
def test_a_book_without_its_directory_says_so(read: Any, files: Any, broken: str) -> None:
    book = files.changed(files.epub(PAGE.format("one")), {broken: "<x/>"})
    with pytest.raises(Unreadable, match="The book is damaged"):
        read(book, "book.epub")


def test_pictures_are_read_by_ocr(read: Any, files: Any) -> None:
    (section,) = read(files.png(60, 30), "scan.png")
    assert (section.text, section.location) == ("TEXT OF A PICTURE", "")
    assert read.pictures == [(60, 30)]


@pytest.mark.parametrize("side", [7_000, 60_000])
def test_a_picture_that_is_a_bomb_is_not_decoded(read: Any, files: Any, side: int) -> None:
    data = bytearray(files.png())
    data[16:24] = side.to_bytes(4, "big") * 2
    data[29:33] = zlib.crc32(data[12:29]).to_bytes(4, "big")
    with pytest.raises(Unreadable, match="larger than 40 million pixels"):
        read(bytes(data), "bomb.png")
    assert not read.pictures


def test_every_page_of_a_scan_is_read(read: Any) -> None:
    out = io.BytesIO()
    pages = [Image.new("L", (30, 30), shade) for shade in (0, 128, 255)]
    pages[0].save(out, "TIFF", save_all=True, append_images=pages[1:])
    sections = read(out.getvalue(), "scan.tiff")
    assert [s.location for s in sections] == ["page 1", "page 2", "page 3"]
