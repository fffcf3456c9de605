"""Blocks of text under headings, as sections whose location is the path of headings."""

from __future__ import annotations

from collections.abc import Iterator

from hookline import Section

HEADING_MAX = 120
"""Characters of a heading in a location."""


class Outline:
    """Takes the headings and blocks of a document in order and gives its sections.

    A heading with nothing below it but a deeper heading begins the deeper one's section, so that
    no section is a heading alone. ``prefix`` stands before every location.
    """

    def __init__(self, prefix: str = "") -> None:
        self._prefix = prefix
        self._path: list[tuple[int, str]] = []
        self._blocks: list[str] = []
        self._has_body = False

    def heading(self, level: int, text: str, block: str | None = None) -> Iterator[Section]:
        """Begins a section; ``level`` 1 is the highest. ``block`` is the heading as it stands in
        the text."""
        deeper = not self._path or level > self._path[-1][0]
        if self._has_body or not deeper:
            yield from self.close()
        while self._path and self._path[-1][0] >= level:
            self._path.pop()
        title = " ".join(text.split())
        self._path.append((level, title[:HEADING_MAX]))
        self._blocks.append(
            block if block is not None else f"{'#' * min(max(level, 1), 6)} {title}"
        )

    def add(self, block: str) -> None:
        """Adds text to the section."""
        if block.strip():
            self._blocks.append(block)
            self._has_body = True

    def close(self) -> Iterator[Section]:
        """The section that was begun, if there is anything in it."""
        if self._blocks:
            path = [self._prefix, *(title for _, title in self._path)]
            yield Section("\n\n".join(self._blocks), " > ".join(part for part in path if part))
        self._blocks = []
        self._has_body = False
