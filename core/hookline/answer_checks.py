"""What plugins' answers must be like, so that a wrong one is its plugin's failure, and no other's.

Each check raises for an answer that cannot be used.
"""

from __future__ import annotations

from typing import Any

import pydantic_core


def is_json(answer: Any) -> None:
    """A mapping that JSON can hold."""
    pydantic_core.to_json(dict(answer))


def is_headers(answer: Any) -> None:
    """A mapping of texts of one line."""
    for name, value in dict(answer).items():
        if not (isinstance(name, str) and isinstance(value, str)) or {*value} & {"\r", "\n"}:
            raise TypeError(f"a header is two texts of one line, not {name!r}: {value!r}")


def is_mapping(answer: Any) -> None:
    """Anything that has keys and values."""
    dict(answer)


def is_text(answer: Any) -> None:
    """A text."""
    if not isinstance(answer, str):
        raise TypeError(f"the answer must be a text, not {type(answer).__name__}")
