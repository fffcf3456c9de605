"""Places in a prompt's text that are more than text: broken control tokens, and images.

They are marked with Unicode noncharacters, which no text contains on purpose, and which are taken
out of what clients send. `tokenize` finds them after the chat template has done its work.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import zip_longest
from typing import Any, NamedTuple

from hookline.engine import Engine
from hookline.images import Image
from hookline.messages import Message

SEAM = "\ufdd0"
"""Marks a place inside a control token's text that a client typed."""

_MARK = re.compile("\ufdd0|\ufdd1([0-9]+)\ufdd2")
_NONCHARACTERS = re.compile("[\ufdd0-\ufdd2]")


def image_mark(index: int) -> str:
    """Marks the place of an image in a message's text, by its place in the conversation."""
    return f"\ufdd1{index}\ufdd2"


def marked_images(text: str) -> list[int]:
    """The images that have a place in a text, by their places in the conversation."""
    return [int(index) for index in _MARK.findall(text) if index]


class Tokens(NamedTuple):
    """A text's ids, and the images in it, in order."""

    ids: list[int]
    images: tuple[Image, ...]


def tokenize(engine: Engine, text: str, images: Sequence[Image] = ()) -> Tokens:
    """Ids of a rendered prompt. Control tokens count only where the template wrote them.

    A template that writes the model's begin token itself gets no second one. ``images`` are those
    of the conversation; the ids of an image count from the first that has a place in the text.
    """
    bos = engine.card.bos
    begins = bool(bos) and text.startswith(bos)
    ids: list[int] = []
    seen: list[Image] = []
    pieces = _MARK.split(text)
    for place, (part, index) in enumerate(zip_longest(pieces[::2], pieces[1::2])):
        ids += engine.tokenize(part, special=True, bos=place == 0 and not begins)
        if index is not None:
            image = images[int(index)]
            ids += engine.image_tokens(image, len(seen))
            seen.append(image)
    return Tokens(ids, tuple(seen))


class Defuser:
    """Breaks the text of control tokens in what a client sent, so that it stays text.

    The break is a seam after the first character; `tokenize` cuts the rendered prompt there, and
    neither half is a control token. Text without control tokens is tokenized as one piece.
    """

    def __init__(self, special_tokens: Sequence[str]) -> None:
        longest_first = sorted((t for t in special_tokens if len(t) > 1), key=len, reverse=True)
        pattern = "|".join(re.escape(token) for token in longest_first)
        self._pattern = re.compile(pattern) if pattern else None

    def text(self, text: str) -> str:
        """One string, defused."""
        text = _NONCHARACTERS.sub("\ufffd", text)
        if self._pattern is None:
            return text
        return self._pattern.sub(lambda match: match[0][0] + SEAM + match[0][1:], text)

    def value(self, value: Any) -> Any:
        """Every string inside lists and mappings, keys too."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, Mapping):
            return {self.value(key): self.value(item) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [self.value(item) for item in value]
        return value

    def message(self, message: Message, first_image: int) -> dict[str, Any]:
        """A message as chat templates expect it, with marks where its images are.

        ``first_image`` is the place of its first image among those of the conversation.
        """
        plain: dict[str, Any] = self.value(message.for_template())
        if isinstance(message.content, list) and message.images:
            plain["content"] = self._marked(message, first_image)
        return plain

    def _marked(self, message: Message, index: int) -> str:
        written = pending = ""
        for part in message.content or ():
            if isinstance(part, str) or part.type == "text":
                # Parts are joined before they are defused: a control token may span two of them.
                pending += part if isinstance(part, str) else part.text
            else:
                written += self.text(pending) + image_mark(index)
                pending, index = "", index + 1
        return written + self.text(pending)
