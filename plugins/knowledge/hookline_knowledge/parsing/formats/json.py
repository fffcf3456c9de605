"""JSON, in pieces that each name their place in it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from hookline import Section
from hookline_knowledge.parsing import kinds
from hookline_knowledge.parsing.charset import decode
from hookline_knowledge.parsing.formats import text
from hookline_knowledge.parsing.reading import Reading

PIECE = 1500
"""Characters of a piece: about what a passage holds."""

_PLAIN = re.compile(r"[A-Za-z_][\w-]{0,60}")


def read(data: bytes, reading: Reading) -> Iterator[Section]:
    """The pieces of a value; as plain text what is no JSON, such as one value a line."""
    try:
        value = json.loads(decode(data))
    except ValueError:
        reading.media_type = kinds.TEXT.media_type
        yield from text.read(data, reading)
    else:
        yield from _pieces(value, "")


def _pieces(value: Any, path: str) -> Iterator[Section]:
    """Neighbours that are small together, and what is in those that are large."""
    if not isinstance(value, dict | list) or len(shown := _shown(value)) <= PIECE:
        yield Section(_shown(value), path)
        return
    del shown
    together: list[tuple[str, str]] = []
    size = 0
    for step, item in _items(value):
        place = f"{path}{step}".removeprefix(".")
        piece = f"{place}: {_shown(item)}"
        if size + len(piece) > PIECE:
            yield from _joined(together)
            together, size = [], 0
        if len(piece) > PIECE and isinstance(item, dict | list):
            yield from _pieces(item, place)
        else:
            together.append((place, piece))
            size += len(piece)
    yield from _joined(together)


def _items(value: dict[str, Any] | list[Any]) -> Iterator[tuple[str, Any]]:
    if isinstance(value, list):
        yield from ((f"[{index}]", item) for index, item in enumerate(value))
        return
    for key, item in value.items():
        yield f".{key}" if _PLAIN.fullmatch(key) else f"[{json.dumps(key)[:80]}]", item


def _joined(together: list[tuple[str, str]]) -> Iterator[Section]:
    if together:
        places = [place for place, _ in together]
        where = places[0] if len(places) == 1 else f"{places[0]} to {places[-1]}"
        yield Section("\n".join(text for _, text in together), where)


def _shown(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=1)
