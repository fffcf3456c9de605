"""Places in a document as people read them: of a part of a section, and of several parts."""

from __future__ import annotations

import re
from bisect import bisect_left

from hookline import Section

_RANGE = re.compile(r"(|.*, )(line|row)s? (\d+)(?:-(\d+))?", re.S)


def numbered(what: str, first: int, last: int) -> str:
    """``line 7`` or ``lines 7-9``."""
    return f"{what} {first}" if first == last else f"{what}s {first}-{last}"


def _range(location: str) -> tuple[str, str, int, int] | None:
    """What stands before a range, of what it is one, its first and its last."""
    found = _RANGE.fullmatch(location)
    return (found[1], found[2], int(found[3]), int(found[4] or found[3])) if found else None


class Places:
    """Tells where parts of a section stand.

    A section of ``lines 10-90`` or ``rows 2-40`` has that many lines of text, so a part of it has a
    range of its own. Everything else, a page say, is the place of all its parts.
    """

    def __init__(self, section: Section) -> None:
        self._location = section.location
        self._text = section.text
        self._breaks: list[int] = []
        self._range = _range(section.location)
        if self._range is not None:
            self._breaks = [at for at, letter in enumerate(section.text) if letter == "\n"]
            if len(self._breaks) != self._range[3] - self._range[2]:
                self._range = None

    def of(self, start: int, end: int) -> str:
        """The location of the characters from ``start`` up to ``end``; white space around them
        counts for nothing."""
        if self._range is None:
            return self._location
        part = self._text[start:end]
        start += len(part) - len(part.lstrip())
        end -= len(part) - len(part.rstrip())
        before, what, first, _ = self._range
        last = first + bisect_left(self._breaks, max(start, end - 1))
        return before + numbered(what, first + bisect_left(self._breaks, start), last)


def joined(one: str, other: str) -> str | None:
    """The location of two parts that follow each other; None where no single one is exact."""
    if one == other:
        return one
    a, b = _range(one), _range(other)
    if a is None or b is None or a[:2] != b[:2]:
        return None
    return a[0] + numbered(a[1], min(a[2], b[2]), max(a[3], b[3]))
