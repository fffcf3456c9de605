"""Excel workbooks, sheet by sheet and row by row."""

from __future__ import annotations

import datetime
import io
from collections.abc import Iterator
from typing import Any

from hookline import Section
from hookline_knowledge.parsing import tables
from hookline_knowledge.parsing.archive import open_archive
from hookline_knowledge.parsing.reading import Reading


def read(data: bytes, reading: Reading) -> Iterator[Section]:
    """The sections of all sheets, hidden ones too. Formulas count as what they gave last."""
    from openpyxl import load_workbook

    open_archive(data, reading.limits).close()
    book = load_workbook(io.BytesIO(data), read_only=True, data_only=True, keep_links=False)
    reading.title = book.properties.title or ""
    for sheet in book.worksheets:
        sheet.reset_dimensions()  # what a file says of its size may be wrong
        rows = ((number, [_text(v) for v in row]) for number, row in _numbered(sheet))
        yield from tables.sections(rows, sheet.title, reading)
    book.close()


def _numbered(sheet: Any) -> Iterator[tuple[int, tuple[Any, ...]]]:
    return enumerate(sheet.iter_rows(values_only=True), 1)


def _text(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.10g}"
    if isinstance(value, datetime.datetime):
        return value.isoformat(" ").removesuffix(" 00:00:00")
    return tables.one_line(str(value))
