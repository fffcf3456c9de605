"""Takes out of a text what its readers do not see and a model does."""

from __future__ import annotations

import re

INVISIBLE = re.compile(
    "["
    "\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f"  # controls, but tab and newlines
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u3164\uffa0"  # fillers
    "\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff"  # zero width, directions
    "\ufff9-\ufffb\U0001d173-\U0001d17a\U000e0000-\U000e0fff"  # annotations, tags
    "\ud800-\udfff"  # halves of characters, which cannot be sent on
    "]"
)

JOINERS = re.compile("(?<![^\x00-\x7f])[\u200c\u200d]|[\u200c\u200d](?![^\x00-\x7f])")
"""Zero-width joiners that join nothing: Persian, Indic scripts and emoji need those between two
of their signs."""

NEWLINES = re.compile("\r\n?|[\u2028\u2029\u0085]")
BLANKS = re.compile(r"[^\S\n]+$", re.M)
GAPS = re.compile(r"\n{3,}")


def clean(text: str) -> str:
    """The text without control characters, invisible signs and changes of direction, its lines
    apart by newlines, with no more than one empty line in a row."""
    text = INVISIBLE.sub("", NEWLINES.sub("\n", text))
    return GAPS.sub("\n\n", BLANKS.sub("", JOINERS.sub("", text))).strip()


def one_line(text: str, most: int = 300) -> str:
    """A title or a name: cleaned, on one line, cut after ``most`` characters."""
    line = " ".join(clean(text).split())
    return line if len(line) <= most else line[: most - 1].rstrip() + "…"
