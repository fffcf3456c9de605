"""Rows of a table as text in which each row means something by itself."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain, islice

from hookline import Section
from hookline_knowledge.locations import numbered
from hookline_knowledge.parsing.reading import Reading
from hookline_knowledge.parsing.unreadable import too_much

Row = tuple[int, list[str]]
"""A row's number, counted from 1 as people see it, and its cells."""

HEADER_WITHIN = 20
"""Rows among which the header is looked for; titles may stand above it."""

GAP_MAX = 20
"""Empty rows that stay as empty lines; a longer gap begins a new section."""

SECTION_ROWS = 1000
"""Rows of a section, so that a long table is passed on piece by piece."""


def sections(rows: Iterable[Row], place: str, reading: Reading) -> Iterator[Section]:
    """A table's sections: one line a row, each cell with its column's name before it.

    ``place`` is written before the rows in the location. Line ``n`` of a section is row ``n`` of
    its range, so that the location of a part can be told.
    """
    lines: list[str] = []
    first = 1
    for number, line in _lines(rows, reading):
        gap = number - first - len(lines)
        if lines and (gap > GAP_MAX or len(lines) >= SECTION_ROWS):
            yield _section(lines, first, place)
            lines = []
        if not lines:
            first, gap = number, 0
        lines += [""] * gap + [line]
    if lines:
        yield _section(lines, first, place)


def _section(lines: list[str], first: int, place: str) -> Section:
    where = numbered("row", first, first + len(lines) - 1)
    return Section("\n".join(lines), f"{place}, {where}" if place else where)


def _lines(rows: Iterable[Row], reading: Reading) -> Iterator[tuple[int, str]]:
    """Rows that are not empty, as text. Raises Unreadable for too many."""
    filled = ((number, cells) for number, cells in rows if any(cells))
    head = list(islice(filled, HEADER_WITHIN))
    at = _header(head)
    names = head[at][1] if at is not None else []
    for index, (number, cells) in enumerate(chain(head, filled)):
        if index >= reading.limits.rows:
            raise too_much("row", reading.limits.rows, "rows")
        if at is None or index <= at:
            yield number, " | ".join(cell for cell in cells if cell)
        else:
            yield number, _named(cells, names)


def _header(rows: list[Row]) -> int | None:
    """Which row names the columns: the first with as many words as any, and no number."""
    widest = max((sum(map(bool, cells)) for _, cells in rows), default=0)
    for index, (_, cells) in enumerate(rows):
        filled = [cell for cell in cells if cell]
        if len(filled) >= 2 and len(filled) == widest:
            return None if any(map(_is_number, filled)) else index
    return None


def _named(cells: list[str], names: list[str]) -> str:
    pairs = enumerate(cells)
    return "; ".join(
        f"{names[column]}: {cell}" if column < len(names) and names[column] else cell
        for column, cell in pairs
        if cell
    )


def _is_number(cell: str) -> bool:
    try:
        float(cell.strip("%$€£ ").replace(",", "."))
    except ValueError:
        return False
    return True


def one_line(text: str) -> str:
    """A cell's text without line breaks."""
    return " ".join(text.split())
