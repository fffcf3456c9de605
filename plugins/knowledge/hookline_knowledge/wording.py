"""Numbers in messages for people."""

from __future__ import annotations


def counted(number: float, one: str) -> str:
    """A number of things, such as ``1 page``, ``0.5 seconds`` or ``20,000 texts``; ``one`` is a
    noun whose plural has an s more."""
    shown = f"{number:,}" if isinstance(number, int) else f"{number:g}"
    return f"{shown} {one}" if number == 1 else f"{shown} {one}s"
