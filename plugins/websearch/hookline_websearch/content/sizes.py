"""How much text is in each part of a page."""

from __future__ import annotations

from lxml.html import HtmlElement


def letters(text: str | None) -> int:
    """Characters of a text, white space left out."""
    return len("".join(text.split())) if text else 0


class Sizes:
    """The characters in every element of a tree, counted once: all of them, and those in links.
    Links are counted too.

    What is taken out of the tree later stays counted.
    """

    def __init__(self, tree: HtmlElement) -> None:
        parts = list(tree.iter("*"))
        self._all = dict.fromkeys(parts, 0)
        self._linked = dict.fromkeys(parts, 0)
        self._links = dict.fromkeys(parts, 0)
        self._titled = {part for title in tree.iter("h1") for part in title.iterancestors()}
        for part in reversed(parts):
            self._count(part)
        self.total = self._all[tree]

    def of(self, part: HtmlElement) -> int:
        """Characters in a part."""
        return self._all.get(part, 0)

    def linked(self, part: HtmlElement) -> int:
        """Characters in links in a part."""
        return self._linked.get(part, 0)

    def links(self, part: HtmlElement) -> int:
        """Links in a part."""
        return self._links.get(part, 0)

    def has_title(self, part: HtmlElement) -> bool:
        """Whether a heading of the first level is in a part."""
        return part in self._titled

    def share(self, part: HtmlElement) -> float:
        """What of the tree's text is in a part."""
        return self.of(part) / max(1, self.total)

    def _count(self, part: HtmlElement) -> None:
        self._all[part] += letters(part.text)
        if part.tag == "a":
            self._linked[part], self._links[part] = self._all[part], 1
        parent = part.getparent()
        if parent in self._all:
            self._all[parent] += self._all[part] + letters(part.tail)
            self._linked[parent] += self._linked[part]
            self._links[parent] += self._links[part]
