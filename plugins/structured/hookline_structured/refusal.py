"""A constraint that cannot be enforced, and where in it the reason is."""

from __future__ import annotations

from collections.abc import Sequence

Place = tuple[str | int, ...]
"""Steps from the constraint's value to a part of it."""

PLACE_MAX = 300
"""Characters of a place in a message; keys are the client's own text."""


class Refused(Exception):
    """What was asked is invalid, unsafe, or cannot be expressed as a grammar."""

    def __init__(self, place: Place, reason: str) -> None:
        super().__init__(reason)
        self.place = place
        self.reason = reason

    def message(self, root: str) -> str:
        """One sentence that begins with the place, below the request field ``root``."""
        return f"'{path(root, self.place)}': {self.reason.rstrip('.')}."


def path(root: str, place: Sequence[str | int]) -> str:
    """A place as text: ``response_format.json_schema.schema.properties.a.pattern``."""
    text = root + "".join(f"[{s}]" if isinstance(s, int) else f".{s}" for s in place)
    return text if len(text) <= PLACE_MAX else text[: PLACE_MAX - 1] + "…"
