"""Finds a text that was chosen from a page in the page again."""

from __future__ import annotations

import re

from lxml.html import HtmlElement

from hookline_websearch.content.prune import HEADINGS, drop

BLOCKS = {
    *("p", "li", "dt", "dd", "h1", "h2", "h3", "h4", "h5", "h6", "blockquote", "figcaption"),
    *("div", "section", "article", "header", "footer", "aside", "address", "summary", "details"),
    *("ul", "ol", "dl", "nav", "main", "body", "form", "fieldset", "caption", "td", "th", "center"),
}
LISTS = ("ul", "ol", "dl")
WHOLE = ("pre", "table")
"""Elements that are kept or dropped as one."""

SHORT = 12
"""Letters up to which a text must be a line of its own to count as chosen: a menu's "About" is
found in any text."""

ENOUGH = 0.5
"""Of a table's rows or a code block's lines that must have been chosen."""

PIECE = 30
PIECES = 20
"""Letters of the pieces, and their number, in which a text is looked for that was not chosen as it
stands."""

SIGNS = re.compile(r"[\W_]+")


class Chosen:
    """A text that was chosen, asked for parts of it; only letters and digits count."""

    def __init__(self, text: str) -> None:
        self._lines = {_letters(line) for line in text.splitlines()}
        self._text = _letters(text)

    def __contains__(self, part: str) -> bool:
        letters = _letters(part)
        if not letters or letters in self._lines:
            return True
        return len(letters) > SHORT and (letters in self._text or self._mostly(letters))

    def keeps(self, block: HtmlElement) -> bool:
        """Whether a block, or what it is the heading of, was chosen."""
        if self._holds(block):
            return True
        follows = block.getnext() if block.tag in HEADINGS else None
        return follows is not None and follows.tag not in HEADINGS and self._holds(follows)

    def _holds(self, block: HtmlElement) -> bool:
        if block.tag not in WHOLE:
            return block.text_content() in self
        rows = [row.text_content() for row in block.iter("tr")] or block.text_content().splitlines()
        rows = [row for row in rows if row.strip()]
        return sum(row in self for row in rows) >= ENOUGH * len(rows)

    def _mostly(self, letters: str) -> bool:
        pieces = [letters[start : start + PIECE] for start in range(0, len(letters), PIECE)]
        pieces = pieces[:PIECES]
        return sum(piece in self._text for piece in pieces) > ENOUGH * len(pieces)


def keep_chosen(tree: HtmlElement, text: str) -> HtmlElement:
    """Drops the blocks of a tree whose text is not in the chosen one; returns the tree."""
    chosen = Chosen(text)
    blocks = [block for block in tree.iter(*BLOCKS, *WHOLE) if not _is_inside_whole(block)]
    outer = _outer(blocks)
    unwanted = [
        block
        for block in blocks
        if (block.tag in WHOLE or block not in outer) and not chosen.keeps(block)
    ]
    between = _lists_between(tree, set(unwanted))
    for block in unwanted:
        if not any(part in between for part in (block, *block.iterancestors())):
            drop(block)
    borders = outer.union(blocks)
    for block in outer:
        if block.tag not in WHOLE:
            _keep_runs(block, borders, chosen)
    return tree


def _is_inside_whole(block: HtmlElement) -> bool:
    return next(block.iterancestors(*WHOLE), None) is not None


def _lists_between(tree: HtmlElement, unwanted: set[HtmlElement]) -> set[HtmlElement]:
    """Lists, tables and code between blocks that were chosen: what is in between belongs to it."""
    return {
        part
        for part in tree.iter(*LISTS, *WHOLE)
        if _is_wanted(part.getprevious(), unwanted) and _is_wanted(part.getnext(), unwanted)
    }


def _is_wanted(block: HtmlElement | None, unwanted: set[HtmlElement]) -> bool:
    return block is not None and block.tag in (*HEADINGS, "p", *WHOLE) and block not in unwanted


def _outer(blocks: list[HtmlElement]) -> set[HtmlElement]:
    """What holds blocks."""
    outer: set[HtmlElement] = set()
    for block in blocks:
        for parent in block.iterancestors():
            if parent in outer:
                break
            outer.add(parent)
    return outer


def _keep_runs(outer: HtmlElement, blocks: set[HtmlElement], chosen: Chosen) -> None:
    """Takes out text that stands between the blocks in another and was not chosen."""
    run: list[HtmlElement] = []
    before: HtmlElement | None = None
    for child in [*outer, None]:
        if child is not None and child not in blocks:
            run.append(child)
            continue
        first = (outer.text if before is None else before.tail) or ""
        text = first + "".join(f"{part.text_content()}{part.tail or ''}" for part in run)
        if text.strip() and text not in chosen:
            if before is None:
                outer.text = None
            else:
                before.tail = None
            for part in run:
                outer.remove(part)
        run, before = [], child


def _letters(text: str) -> str:
    return SIGNS.sub("", text).lower()
