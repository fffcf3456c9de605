"""Finds a text that was chosen from a page in the page again."""

from __future__ import annotations

import re
from collections.abc import Callable

from lxml.html import HtmlElement

from hookline_websearch.content.prune import drop

BLOCKS = {
    *("p", "li", "dt", "dd", "h1", "h2", "h3", "h4", "h5", "h6", "blockquote", "figcaption"),
    *("div", "section", "article", "header", "footer", "aside", "address", "summary", "details"),
    *("ul", "ol", "dl", "nav", "main", "body", "form", "fieldset", "caption", "td", "th", "center"),
}
WHOLE = ("pre", "table")
"""Elements that are kept or dropped as one."""

SHORT = 12
"""Letters up to which a text must be a line of its own to count as chosen: a menu's "About" is
found in any text."""

ENOUGH = 0.5
"""Of a table's rows or a code block's lines that must have been chosen."""

SIGNS = re.compile(r"[\W_]+")


def keep_chosen(tree: HtmlElement, chosen: str) -> HtmlElement:
    """Drops the blocks of a tree whose text is not in the chosen one; returns the tree."""
    lines = {_letters(line) for line in chosen.splitlines()}
    text = _letters(chosen)

    def is_chosen(part: str) -> bool:
        letters = _letters(part)
        return not letters or (letters in lines if len(letters) <= SHORT else letters in text)

    for block in _units(tree):
        if not _kept(block, is_chosen):
            drop(block)
    return tree


def _units(tree: HtmlElement) -> list[HtmlElement]:
    """The smallest blocks, and tables and code as wholes."""
    blocks = list(tree.iter(*BLOCKS, *WHOLE))
    outer: set[HtmlElement] = set()
    for block in blocks:
        for parent in block.iterancestors():
            if parent in outer:
                break
            outer.add(parent)
    return [
        block
        for block in blocks
        if (block.tag in WHOLE or block not in outer)
        and not any(True for _ in block.iterancestors(*WHOLE))
    ]


def _kept(block: HtmlElement, is_chosen: Callable[[str], bool]) -> bool:
    if block.tag not in WHOLE:
        return is_chosen(block.text_content())
    rows = [row.text_content() for row in block.iter("tr")] or block.text_content().splitlines()
    rows = [row for row in rows if row.strip()]
    return sum(map(is_chosen, rows)) >= ENOUGH * len(rows)


def _letters(text: str) -> str:
    return SIGNS.sub("", text).lower()
