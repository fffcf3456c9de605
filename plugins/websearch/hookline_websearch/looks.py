"""How the pages that a message links to look: their design in words, and pictures of them."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Iterator, Sequence
from typing import Protocol

from hookline import ImagePart, Message, TextPart, in_line, quoted
from hookline_websearch.page import Look, Page
from hookline_websearch.reading import Reads

INSTRUCTION = (
    'Below is how linked pages look in a browser. Lines that begin with ">" come from them.'
)


class Looks(Protocol):
    """What shows pages to a browser; `hookline_websearch.reader.Reader` does."""

    @property
    def can_look(self) -> bool:
        """Whether there is a browser."""
        ...

    async def look(self, url: str, seconds: float) -> Look:
        """One page, as far as it could be shown in so many seconds."""
        ...


class Shown:
    """Reads pages, but for those that a browser has shown already: what it saw is all there is,
    and a depth's seconds may be too few to start it once more."""

    def __init__(self, reader: Reads, looks: Sequence[Look]) -> None:
        self._reader = reader
        self._pages = {look.page.url: look.page for look in looks if look.page.text}

    async def read(self, urls: Sequence[str], seconds: float) -> list[Page]:
        """A page for each address."""
        unseen = [url for url in urls if url not in self._pages]
        read = await self._reader.read(unseen, seconds) if unseen else []
        pages = {**self._pages, **dict(zip(unseen, read, strict=True))}
        return [pages[url] for url in urls]


async def look_at(links: Sequence[str], reader: Looks, seconds: float) -> list[Look]:
    """The pages that could be shown; none without a browser."""
    if not links or not reader.can_look:
        return []
    seen = await asyncio.gather(*(reader.look(link, seconds) for link in links))
    return [look for look in seen if look.design or look.screenshot]


def design_text(looks: Sequence[Look]) -> str:
    """The designs as a part of the prompt; empty where there are none."""
    designs = list(_designs(looks))
    return "\n\n".join([INSTRUCTION, *designs]) if designs else ""


def _designs(looks: Sequence[Look]) -> Iterator[str]:
    for look in looks:
        if look.design:
            yield f"{in_line(look.page.final_url or look.page.url)}\n{quoted(look.design)}"


def with_pictures(messages: Sequence[Message], looks: Sequence[Look]) -> list[Message]:
    """The conversation with pictures of the pages at the end of its last user message."""
    pictures = [_picture(look.screenshot) for look in looks if look.screenshot]
    for place in range(len(messages) - 1, -1, -1):
        message = messages[place]
        if message.role == "user" and pictures:
            begin = message.content
            parts = list(begin) if isinstance(begin, list) else [TextPart(text=message.text)]
            changed = message.model_copy(update={"content": [*parts, *pictures]})
            return [*messages[:place], changed, *messages[place + 1 :]]
    return list(messages)


def _picture(png: bytes) -> ImagePart:
    data = base64.b64encode(png).decode()
    return ImagePart.model_validate({"image_url": {"url": f"data:image/png;base64,{data}"}})
