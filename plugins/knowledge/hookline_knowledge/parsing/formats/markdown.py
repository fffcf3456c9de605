"""Markdown, section by section as its headings say."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

from hookline import Section
from hookline_knowledge.parsing.charset import clean, decode
from hookline_knowledge.parsing.outline import Outline
from hookline_knowledge.parsing.reading import Reading

_FRONT_MATTER = re.compile(r"\A---\n(.*?)\n(?:---|\.\.\.)(?:\n|\Z)", re.S)
_TITLE = re.compile(r"^title:\s*[\"']?(.+?)[\"']?\s*$", re.M)
_EMBEDDED = re.compile(r"(data:[\w/+.-]{1,60};base64,)[A-Za-z0-9+/=]{80,}")


def read(data: bytes, reading: Reading) -> Iterator[Section]:
    """The sections of a Markdown file."""
    yield from sections(clean(decode(data)), reading)


def sections(text: str, reading: Reading, prefix: str = "") -> Iterator[Section]:
    """The sections of a text; ``prefix`` stands before their locations."""
    from markdown_it import MarkdownIt

    text = _EMBEDDED.sub(r"\1…", text)
    outline = Outline(prefix)
    front = _FRONT_MATTER.match(text)
    if front is not None:
        text = text[front.end() :]
        outline.add(front[1])
        if (title := _TITLE.search(front[1])) is not None:
            reading.title = reading.title or title[1]
    # Only the places of headings are wanted, not what stands in the lines.
    tokens = MarkdownIt("commonmark").disable("inline").parse(text)
    lines = text.split("\n")
    done = 0
    for token, content in pairwise(tokens):
        if token.type != "heading_open" or token.level or token.map is None:
            continue
        begin, end = token.map
        outline.add("\n".join(lines[done:begin]).strip("\n"))
        block = "\n".join(lines[begin:end]).strip()
        yield from outline.heading(int(token.tag[1]), content.content, block)
        done = end
    outline.add("\n".join(lines[done:]).strip("\n"))
    yield from outline.close()
