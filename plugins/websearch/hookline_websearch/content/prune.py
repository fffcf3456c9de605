"""Takes out of a page what is not its content: scripts, hidden parts, navigation, notices, ads.

Works on the tree in place, and by what pages say of their parts themselves.
"""

from __future__ import annotations

import itertools

from lxml import etree
from lxml.html import HtmlElement

from hookline_websearch.content.names import (
    NEVER,
    heads_others,
    is_about_others,
    is_around,
    is_hidden,
    may_be_around,
)
from hookline_websearch.content.sizes import Sizes

HEADINGS = ("h1", "h2", "h3", "h4", "h5", "h6")
UNTOUCHED = {"html", "body", "main", "h1", "a", "code", "pre", "table", "tr", "td"}
"""Elements that are not taken out for what they are called."""

TOO_MUCH = 0.5
"""A part with more of the page's text than this is content, whatever it is called."""

OTHERS_SHARE = 0.25
"""Of the page's text: parts about other pages with more of it are lists that are the content."""

LINK_SHARE = 0.5
BRIEF = 200
"""Share of text in links, or characters, by which a part is one of links or a remark."""

A_WORD = 300
"""Characters up to which what is shown without scripts is a word about them."""

MENU_LINKS = 4
MENU_NAME = 25
MENU_SHARE = 0.8
"""So many links, with names of no more characters, and little else: a menu, whatever its name."""

LAYOUT_CELL = 300
"""Characters a cell above which a table is no table of data."""


def remove_invisible(tree: HtmlElement) -> None:
    """Takes out what no reader sees. What is written for machines only must not reach a model."""
    etree.strip_elements(tree, etree.Comment, *NEVER, with_tail=False)
    sizes = Sizes(tree)
    for part in list(tree.iter("noscript")):
        _choose_without_scripts(part, sizes)
    for part in list(tree.iter("*")):
        # What holds the heading of the page is shown in the end, by a script.
        if is_hidden(part) and sizes.share(part) <= TOO_MUCH and not sizes.has_title(part):
            drop(part)


def _choose_without_scripts(part: HtmlElement, sizes: Sizes) -> None:
    """What a page shows without scripts is the page, or a word that it needs them."""
    if sizes.of(part) > A_WORD and sizes.share(part) > TOO_MUCH:
        part.drop_tag()
    else:
        drop(part)


def unfold_layout(tree: HtmlElement) -> None:
    """Makes of tables that only place things what they are: a stack of blocks."""
    sizes = Sizes(tree)
    for table in list(tree.iter("table")):
        cells = max(1, sum(1 for _ in table.iter("td", "th")))
        inner = any(True for _ in table.iterdescendants("table", "h1", "h2"))
        if inner or sizes.of(table) > LAYOUT_CELL * cells:
            for part in (table, *table.iter("thead", "tbody", "tr", "td", "th")):
                part.tag = "div"


def remove_menus(tree: HtmlElement) -> None:
    """Takes out rows and columns of links."""
    sizes = Sizes(tree)
    for part in list(tree.iter("div", "p", "ul", "td", "center")):
        if sizes.share(part) <= OTHERS_SHARE and _is_menu(part, sizes):
            drop(part)


def remove_others(tree: HtmlElement) -> None:
    """Takes out teasers of other pages."""
    sizes = Sizes(tree)
    parts = [part for part in tree.iter("div", "section", "ul") if is_about_others(part)]
    for heading in tree.iter(*HEADINGS[1:]):
        if heads_others(heading):
            parts += _section(heading)
    for part in parts:
        if sizes.share(part) <= OTHERS_SHARE:
            drop(part)


def remove_around(tree: HtmlElement) -> None:
    """Takes out what stands around the content."""
    sizes = Sizes(tree)
    for part in list(tree.iter("*")):
        if part.tag in UNTOUCHED or sizes.share(part) > TOO_MUCH:
            continue
        if is_around(part) or (may_be_around(part) and _is_of_links(part, sizes)):
            drop(part)


def drop(part: HtmlElement) -> None:
    """Takes an element out, and leaves the text after it."""
    if part.getparent() is not None:
        part.drop_tree()


def _is_menu(part: HtmlElement, sizes: Sizes) -> bool:
    links, linked = sizes.links(part), sizes.linked(part)
    return (
        links >= MENU_LINKS and linked <= MENU_NAME * links and linked > MENU_SHARE * sizes.of(part)
    )


def _is_of_links(part: HtmlElement, sizes: Sizes) -> bool:
    if sizes.has_title(part):
        return False
    return sizes.of(part) < BRIEF or sizes.linked(part) > LINK_SHARE * sizes.of(part)


def _section(heading: HtmlElement) -> list[HtmlElement]:
    """What a heading is the heading of: the box that begins with it, or what follows it."""
    box = heading
    while (parent := box.getparent()) is not None and parent.tag in ("div", "section", "header"):
        if box.getprevious() is not None or (parent.text or "").strip():
            break
        box = parent
    if box is not heading and len(box) > 1:
        return [box]
    follow = itertools.takewhile(
        lambda part: not (part.tag in HEADINGS and part.tag <= heading.tag), box.itersiblings()
    )
    return [box, *follow]
