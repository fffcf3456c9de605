"""Pages in pieces that can be ranked and quoted."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

LONGEST = 900
"""Characters of a passage."""

SHORT = 200
"""Characters below which a passage is joined with what follows, also over a heading."""

MOST = 150
"""Passages of one page that are looked at."""

_FENCE = re.compile(r"^ {0,3}(```|~~~)")
_HEADING = re.compile(r"^ {0,3}(#{1,6})\s+(.+?)\s*#*\s*$")
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+|(?<=[。！？])")


@dataclass(frozen=True, slots=True)
class Passage:
    """A piece of a page: ``page`` and ``place`` are counted from 0, ``heading`` is what it stands
    under where it does not begin with that itself."""

    page: int
    place: int
    text: str
    heading: str = ""

    @property
    def whole(self) -> str:
        """The text under its heading."""
        return f"{self.heading}\n{self.text}" if self.heading else self.text


def passages_of(page: int, markdown: str) -> list[Passage]:
    """A page's text cut at headings, paragraphs, lines and sentences, whichever is needed."""
    passages: list[Passage] = []
    for heading, text in _packed(_pieces(_blocks(markdown))):
        if len(passages) == MOST:
            break
        passages.append(Passage(page, len(passages), text, heading))
    return passages


def _blocks(markdown: str) -> Iterator[str]:
    """Paragraphs, headings, and code between fences whole."""
    lines: list[str] = []
    fence = ""
    for line in markdown.splitlines():
        mark = _FENCE.match(line)
        if mark and not fence:
            fence = mark[1]
        elif mark and mark[1] == fence:
            fence = ""
        if fence or mark or (line.strip() and not _HEADING.match(line)):
            lines.append(line)
            continue
        yield from _joined(lines)
        lines = []
        if line.strip():
            yield line.strip()
    yield from _joined(lines)


def _joined(lines: list[str]) -> Iterator[str]:
    text = "\n".join(lines).strip("\n")
    if text.strip():
        yield text


def _pieces(blocks: Iterable[str]) -> Iterator[str]:
    """Blocks that are short enough, and parts of those that are not."""
    for block in blocks:
        if len(block) <= LONGEST:
            yield block
        else:
            lines = block.splitlines()
            yield from _filled((part for line in lines for part in _sentences(line)), "\n")


def _sentences(line: str) -> Iterator[str]:
    if len(line) <= LONGEST:
        yield line
        return
    parts = (
        sentence[start : start + LONGEST]
        for sentence in _SENTENCE_END.split(line)
        for start in range(0, len(sentence), LONGEST)
    )
    yield from _filled(parts, " ")


def _filled(parts: Iterable[str], glue: str) -> Iterator[str]:
    """Parts put together as long as they fit."""
    text = ""
    for part in parts:
        if text and len(text) + len(glue) + len(part) > LONGEST:
            yield text
            text = ""
        text = f"{text}{glue}{part}" if text else part
    if text:
        yield text


def _packed(pieces: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Pieces put together below their heading: the heading they continue, and the text."""
    above = heading = pending = text = ""
    for piece in pieces:
        if _HEADING.match(piece):
            pending = f"{pending}\n{piece}".lstrip()
            heading = piece
            continue
        if text and (len(text) + len(piece) > LONGEST or (pending and len(text) >= SHORT)):
            yield above, text
            text = ""
        if not text:
            above = "" if pending else heading
        text = "\n\n".join(filter(None, [text, pending, piece]))
        pending = ""
    if text:
        yield above, text
