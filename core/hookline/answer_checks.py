"""What plugins' answers must be like, so that a wrong one is its plugin's failure, and no other's.

Each check raises for an answer that cannot be used.
"""

from __future__ import annotations

from typing import Any

import pydantic_core

from hookline.messages import Message

OWN_FIELDS = frozenset(
    {
        *("id", "object", "created", "model", "choices", "usage", "system_fingerprint"),
        *("timings", "progress", "warnings", "error", "service_tier"),
    }
)
"""What the server itself says in an answer."""


def is_json(answer: Any) -> None:
    """A mapping that JSON can hold."""
    pydantic_core.to_json(dict(answer))


def are_fields(answer: Any) -> None:
    """A mapping that JSON can hold, without the keys of the core."""
    is_json(answer)
    if taken := dict(answer).keys() & OWN_FIELDS:
        raise ValueError(f"the field '{min(taken)}' of an answer is the server's own")


def are_messages(answer: Any) -> None:
    """What a transform may leave: a list of messages."""
    if not isinstance(answer, list):
        raise TypeError(f"it left {type(answer).__name__} in exchange.messages, not a list")
    for place, message in enumerate(answer):
        if not isinstance(message, Message):
            kind = type(message).__name__
            raise TypeError(f"messages[{place}] is no Message, but {kind}")


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
