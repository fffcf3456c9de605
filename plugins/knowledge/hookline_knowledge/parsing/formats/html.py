"""HTML pages as Markdown, section by section as their headings say."""

from __future__ import annotations

import re
from collections.abc import Iterator

from hookline import Section
from hookline_knowledge.parsing.charset import clean, decode
from hookline_knowledge.parsing.formats import markdown
from hookline_knowledge.parsing.reading import Reading

UNSEEN = (
    "//comment()|//script|//style|//template|//noscript|//svg|//iframe|//object|//nav|//select"
    "|//button|//input|//textarea|//head|//*[@hidden]|//*[@aria-hidden='true']"
    "|//*[contains(translate(@style, ' ', ''), 'display:none')]"
    "|//processing-instruction()"
)
"""What a reader of the page does not see, or what only serves to move about in it."""


INLINE = ("a", "b", "em", "font", "i", "small", "span", "strong", "u")
"""Elements that say how words look, of which nothing is kept."""

_SPACED = re.compile(r"\n(?:[ \t]*\n)+")


def read(data: bytes, reading: Reading) -> Iterator[Section]:
    """The sections of a page."""
    yield from sections(decode(data), reading)


def sections(page: str, reading: Reading, prefix: str = "") -> Iterator[Section]:
    """The sections of a page's source; ``prefix`` stands before their locations."""
    yield from markdown.sections(as_markdown(page, reading), reading, prefix)


def as_markdown(page: str, reading: Reading) -> str:
    """What is seen of a page; its title becomes the file's where there is none yet."""
    from lxml import etree, html
    from markdownify import markdownify

    # Without huge_tree what is nested deeper than 256 times is lost in silence.
    parser = html.HTMLParser(no_network=True, encoding="utf-8", huge_tree=True)
    tree = html.document_fromstring(clean(page).encode(), parser=parser)
    title = " ".join((tree.findtext(".//title") or "").split())
    reading.title = reading.title or title
    for element in tree.xpath(UNSEEN):
        if element.getparent() is not None:
            element.drop_tree()
    for image in tree.iter("img"):
        image.tag, image.text = "span", image.get("alt")
    etree.strip_tags(tree, *INLINE)
    source = etree.tostring(tree, encoding="unicode", method="html")
    text = markdownify(
        source,
        bs4_options="lxml",
        heading_style="atx",
        escape_asterisks=False,
        escape_underscores=False,
    )
    return _SPACED.sub("\n\n", text).strip()
