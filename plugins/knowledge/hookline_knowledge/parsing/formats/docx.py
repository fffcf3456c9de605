"""Word documents, section by section as their headings say."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Any

from hookline import Section
from hookline_knowledge.parsing.archive import open_archive
from hookline_knowledge.parsing.outline import Outline
from hookline_knowledge.parsing.reading import Reading

W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
FALLBACK = "{http://schemas.openxmlformats.org/markup-compatibility/2006}Fallback"
TEXT_BOX = f"{W}txbxContent"

HIDDEN = frozenset((f"{W}del", f"{W}moveFrom", f"{W}instrText", f"{W}delText", FALLBACK))
"""What is not, or no longer, part of the text; a fallback says the same as its alternative."""

NOTES = (("footnotes", "Footnotes"), ("endnotes", "Endnotes"))


def read(data: bytes, reading: Reading) -> Iterator[Section]:
    """The sections of the body, then foot- and endnotes."""
    from docx import Document

    open_archive(data, reading.limits).close()
    document = Document(io.BytesIO(data))
    reading.title = document.core_properties.title or ""
    levels = _heading_levels(document)
    outline = Outline()
    for block in _blocks(document.element.body):
        if block.tag == f"{W}tbl":
            outline.add(_table(block))
            continue
        text, level = _text(block), _level(block, levels)
        if level is not None and text.strip():
            yield from outline.heading(level, text)
        else:
            outline.add(f"- {text}" if _is_item(block) and text.strip() else text)
        for box in _boxes(block):
            outline.add(_table_or_text(box))
    yield from outline.close()
    yield from _notes(document)


def _blocks(parent: Any) -> Iterator[Any]:
    """Paragraphs and tables in order, also those in content controls and the like."""
    for child in parent:
        if child.tag in (f"{W}p", f"{W}tbl"):
            yield child
        elif child.tag not in HIDDEN and isinstance(child.tag, str):
            yield from _blocks(child)


def _text(paragraph: Any) -> str:
    """The text of a paragraph as it is to be read, without its text boxes."""
    return "".join(_runs(paragraph))


def _runs(parent: Any) -> Iterator[str]:
    for child in parent:
        if child.tag == f"{W}t":
            yield child.text or ""
        elif child.tag in (f"{W}tab", f"{W}ptab"):
            yield "\t"
        elif child.tag in (f"{W}br", f"{W}cr"):
            yield "\n"
        elif child.tag == f"{W}noBreakHyphen":
            yield "-"
        elif child.tag not in HIDDEN and child.tag not in (TEXT_BOX, f"{W}pPr"):
            yield from _runs(child)


def _boxes(paragraph: Any) -> Iterator[Any]:
    for box in paragraph.iter(TEXT_BOX):
        if not any(parent.tag == FALLBACK for parent in box.iterancestors()):
            yield box


def _table_or_text(parent: Any) -> str:
    """The blocks in a cell or a text box as one text."""
    texts = [_table(b) if b.tag == f"{W}tbl" else _text(b) for b in _blocks(parent)]
    return "\n".join(text for text in texts if text.strip())


def _table(table: Any) -> str:
    """A table as Markdown; cells that were merged keep their text once."""
    rows = [_cells(row) for row in table.iter(f"{W}tr") if _table_of(row) is table]
    rows = [row for row in rows if any(row)]
    if not rows:
        return ""
    lines = [f"| {' | '.join(row)} |" for row in rows]
    return "\n".join([lines[0], "|" + "---|" * len(rows[0]), *lines[1:]])


def _table_of(row: Any) -> Any:
    return next(parent for parent in row.iterancestors() if parent.tag == f"{W}tbl")


def _cells(row: Any) -> list[str]:
    cells = [cell for cell in row.iter(f"{W}tc") if next(cell.iterancestors(f"{W}tr")) is row]
    return [" ".join(_table_or_text(cell).split()).replace("|", "\\|") for cell in cells]


def _heading_levels(document: Any) -> dict[str, int | None]:
    """Levels of the styles that are headings, or are based on one, by the style's id."""
    own: dict[str, int] = {}
    parents: dict[str, str] = {}
    for style in document.styles.element.iter(f"{W}style"):
        key = style.get(f"{W}styleId", "")
        name = style.find(f"{W}name")
        level = _named_level(name.get(f"{W}val", "") if name is not None else "")
        level = _outline_level(style) if level is None else level
        if level is not None:
            own[key] = level
        if (based_on := style.find(f"{W}basedOn")) is not None:
            parents[key] = based_on.get(f"{W}val", "")
    return {key: _inherited(key, own, parents) for key in {*own, *parents}}


def _inherited(key: str, own: dict[str, int], parents: dict[str, str]) -> int | None:
    for _ in range(len(parents) + 1):
        if key in own:
            return own[key]
        key = parents.get(key, "")
    return None


def _named_level(name: str) -> int | None:
    """Word's own headings have the same names in files of all languages."""
    if name.lower() == "title":
        return 0
    word, _, number = name.lower().partition(" ")
    return int(number) if word == "heading" and number in tuple("123456789") else None


def _outline_level(element: Any) -> int | None:
    found = element.find(f"{W}pPr/{W}outlineLvl")
    value = found.get(f"{W}val", "") if found is not None else ""
    return int(value) + 1 if value in tuple("012345678") else None


def _level(paragraph: Any, levels: dict[str, int | None]) -> int | None:
    own = _outline_level(paragraph)
    style = paragraph.find(f"{W}pPr/{W}pStyle")
    if own is not None or style is None:
        return own
    return levels.get(style.get(f"{W}val", ""))


def _is_item(paragraph: Any) -> bool:
    numbering = paragraph.find(f"{W}pPr/{W}numPr")
    style = paragraph.find(f"{W}pPr/{W}pStyle")
    listed = style is not None and style.get(f"{W}val", "").startswith("List")
    return numbering is not None or (listed and style.get(f"{W}val") != "ListParagraph")


def _notes(document: Any) -> Iterator[Section]:
    from lxml import etree

    for kind, title in NOTES:
        for relation in document.part.rels.values():
            if relation.reltype.endswith(f"/{kind}") and not relation.is_external:
                parser = etree.XMLParser(resolve_entities=False, no_network=True)
                root = etree.fromstring(relation.target_part.blob, parser)
                notes = [_table_or_text(note) for note in root]
                yield Section("\n".join(note for note in notes if note.strip()), title)
