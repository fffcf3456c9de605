"""PowerPoint presentations, slide by slide with their notes."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Any

from hookline import Section
from hookline_knowledge.parsing.archive import open_archive
from hookline_knowledge.parsing.reading import Reading
from hookline_knowledge.parsing.unreadable import too_much

DIAGRAM = "http://schemas.openxmlformats.org/drawingml/2006/diagram"
DRAWING = "{http://schemas.openxmlformats.org/drawingml/2006/main}"


def read(data: bytes, reading: Reading) -> Iterator[Section]:
    """A section for each slide, hidden ones too."""
    from pptx import Presentation

    open_archive(data, reading.limits).close()
    presentation = Presentation(io.BytesIO(data))
    reading.title = presentation.core_properties.title or ""
    for number, slide in enumerate(presentation.slides, 1):
        if number > reading.limits.pages:
            raise too_much("slide", reading.limits.pages, "pages")
        blocks = [block for shape in _in_order(slide) for block in _blocks(shape)]
        if slide.has_notes_slide and (notes := slide.notes_slide.notes_text_frame) is not None:
            blocks += [f"Notes: {notes.text}"] if notes.text.strip() else []
        yield Section("\n\n".join(block for block in blocks if block.strip()), f"slide {number}")


def _in_order(slide: Any) -> list[Any]:
    """The shapes as they stand on the slide, its title first."""
    title = slide.shapes.title
    rest = [shape for shape in slide.shapes if title is None or shape.shape_id != title.shape_id]
    return ([title] if title is not None else []) + rest


def _blocks(shape: Any) -> Iterator[str]:
    """The text in a shape and in those that it groups."""
    if hasattr(shape, "shapes"):
        for inner in shape.shapes:
            yield from _blocks(inner)
    if shape.has_text_frame:
        yield shape.text_frame.text.replace("\v", "\n")
    if getattr(shape, "has_table", False):
        yield "\n".join(_row(row) for row in shape.table.rows)
    if getattr(shape, "has_chart", False):
        yield from _chart(shape.chart)
    yield from _diagram(shape)


def _row(row: Any) -> str:
    return " | ".join(" ".join(cell.text.split()) for cell in row.cells if not cell.is_spanned)


def _chart(chart: Any) -> Iterator[str]:
    """A chart's title and figures."""
    if chart.has_title and chart.chart_title.has_text_frame:
        yield chart.chart_title.text_frame.text
    for plot in chart.plots:
        categories = [str(category) for category in plot.categories]
        for series in plot.series:
            figures = zip(categories, series.values, strict=False)
            yield f"{series.name}: " + ", ".join(f"{name} {value}" for name, value in figures)


def _diagram(shape: Any) -> Iterator[str]:
    """The words in a SmartArt, which lie in a part of their own."""
    for ids in shape.element.iter(f"{{{DIAGRAM}}}relIds"):
        key = next((value for name, value in ids.items() if name.endswith("}dm")), None)
        if key is not None:
            from lxml import etree

            parser = etree.XMLParser(resolve_entities=False, no_network=True)
            root = etree.fromstring(shape.part.related_part(key).blob, parser)
            yield "\n".join(text for node in root.iter(f"{DRAWING}t") if (text := node.text))
