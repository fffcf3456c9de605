"""Plain text and code of any language: one section, whose lines can be counted."""

from __future__ import annotations

from collections.abc import Iterator

from hookline import Section
from hookline_knowledge.locations import numbered
from hookline_knowledge.parsing.charset import clean, decode
from hookline_knowledge.parsing.reading import Reading


def read(data: bytes, reading: Reading) -> Iterator[Section]:
    """The text with its range of lines."""
    text = clean(decode(data)).rstrip("\n")
    yield Section(text, numbered("line", 1, text.count("\n") + 1))
