"""Takes out of a page what is not its content: scripts, hidden parts, navigation, notices, ads.

Works on the tree in place, and by what pages say of their parts themselves: names of elements,
roles, and the words in ``class`` and ``id``.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator

from lxml import etree
from lxml.html import HtmlElement

NEVER = (
    *("script", "style", "template", "svg", "canvas", "iframe", "object", "embed"),
    *("link", "meta", "base", "audio", "video", "source", "track", "map", "area", "dialog"),
    *("button", "select", "input", "textarea", "progress", "meter", "datalist"),
)
"""Elements that hold no text for readers."""

HEADINGS = ("h1", "h2", "h3", "h4", "h5", "h6")

AROUND = ("nav", "footer", "aside", "menu")
"""Elements that stand around the content."""

ROLES = {
    *("navigation", "banner", "contentinfo", "complementary", "search", "dialog", "alertdialog"),
    *("menu", "menubar", "toolbar", "alert", "status", "tooltip"),
}

NOTICES = {
    *("cookie", "cookies", "consent", "gdpr", "ccpa", "onetrust", "cookiebot", "paywall"),
    *("breadcrumb", "breadcrumbs", "crumbs", "newsletter", "pagination", "pager", "skiplink"),
    *("adsense", "advert", "advertisement", "sponsored", "outbrain", "taboola", "sharing"),
    *("popup", "toast", "snackbar", "noprint", "megamenu", "searchbox", "upsell"),
}
"""What parts that are never content are called."""

LINKS = {
    *("nav", "navbar", "navigation", "menu", "submenu", "dropdown", "sidebar", "sidenav", "rail"),
    *("footer", "masthead", "header", "toolbar", "share", "social", "socials", "promo"),
    *("promotion", "ad", "ads", "sponsor", "subscribe", "subscription", "signup", "login"),
    *("signin", "modal", "popover", "overlay", "skip", "widget", "tags", "buttons", "actions"),
    *("badges", "announcement", "profile", "postprofile", "userinfo", "byline"),
}
"""What parts are called that mostly are not content: they are none where they are mostly links, or
short."""

OTHERS = {
    *("related", "recommended", "recommendation", "recommendations", "popular", "trending"),
}
"""What parts about other pages are called."""

ABOUT_OTHERS = re.compile(
    r"(?:related|recommended|popular|trending|latest|similar|more)\s+(?:\w+\s+){0,2}(?:articles?|posts?"
    r"|stories|products?|items?|news|reading|topics|pages|links|from|like)\b|related$"
    r"|(?:you|customers?|people)\b.{0,25}\b(?:also|like|bought|viewed)\b|recommended (?:for|by)\b"
    r"|(?:share|follow|subscribe|sign up|join our|newsletter|advertisement|sponsored|read next)\b",
    re.I,
)
"""Headings of parts about other pages, or about the site."""

OTHERS_SHARE = 0.25
"""Of the page's text: parts about other pages with more of it are lists that are the content."""

PHRASES = re.compile(
    r"\b(?:sr[-_]?only|visually[-_]?hidden|screen[-_]reader|read[-_](?:next|more[-_]from)"
    r"|more[-_](?:stories|articles|from)|you[-_](?:may|might)[-_]|also[-_](?:like|bought)"
    r"|search[-_]?(?:bar|box|form)|edit[-_]?section|back[-_]to[-_]top|table[-_]of[-_]contents|toc"
    r"|post[-_]nav|lang[-_]switch\w*)\b",
    re.I,
)

HIDING = re.compile(
    r"display\s*:\s*none|visibility\s*:\s*hidden|font-size\s*:\s*0(?![.\d])|opacity\s*:\s*0(?![.\d])",
    re.I,
)

TOO_MUCH = 0.5
"""A part with more of the page's text than this is content, whatever it is called."""

LINK_SHARE = 0.5
BRIEF = 200
"""Share of text in links, or characters, by which a part is one of links or a remark."""

PANELS = {"tabpanel", "region"}
"""Roles of parts that readers unfold."""

LATER = re.compile(r"S:\w+")
"""Ids of parts that a script of React moves to their place and shows."""

A_WORD = 300
"""Characters up to which what is shown without scripts is a word about them."""

MENU_LINKS = 4
MENU_NAME = 25
MENU_SHARE = 0.8
"""So many links, with names of no more characters, and little else: a menu, whatever its name."""

LAYOUT_CELL = 300
"""Characters a cell above which a table is no table of data."""

SPLIT = re.compile(r"[^A-Za-z0-9]+|(?<=[a-z0-9])(?=[A-Z])")


def remove_invisible(tree: HtmlElement) -> None:
    """Takes out what no reader sees. What is written for machines only must not reach a model."""
    etree.strip_elements(tree, etree.Comment, *NEVER, with_tail=False)
    _choose_without_scripts(tree)
    limit = TOO_MUCH * text_length(tree)
    for part in list(tree.iter("*")):
        # What holds the heading of the page is shown in the end, by a script.
        if _hidden(part) and text_length(part) <= limit and not part.xpath(".//h1"):
            drop(part)


def _choose_without_scripts(tree: HtmlElement) -> None:
    """Of what a page shows without scripts, keeps what is the page, not a word that it needs
    them."""
    for part in list(tree.iter("noscript")):
        length = text_length(part)
        if length > max(A_WORD, TOO_MUCH * text_length(tree)):
            part.drop_tag()
        else:
            drop(part)


def remove_around(tree: HtmlElement) -> None:
    """Takes out what stands around the content."""
    limit = TOO_MUCH * text_length(tree)
    for part in list(_around(tree)):
        if text_length(part) <= limit:
            drop(part)


def remove_others(tree: HtmlElement) -> None:
    """Takes out teasers of other pages."""
    limit = OTHERS_SHARE * text_length(tree)
    parts = [
        part for part in tree.iter("div", "section", "ul") if not OTHERS.isdisjoint(_words(part))
    ]
    for heading in tree.iter("h2", "h3", "h4", "h5", "h6"):
        if ABOUT_OTHERS.match(" ".join(heading.text_content().split())):
            parts += _section(heading)
    for part in parts:
        if text_length(part) <= limit:
            drop(part)


def remove_menus(tree: HtmlElement) -> None:
    """Takes out rows and columns of links."""
    limit = OTHERS_SHARE * text_length(tree)
    for part in [part for part in tree.iter("div", "p", "ul", "td", "center") if _is_menu(part)]:
        if text_length(part) <= limit:
            drop(part)


def _is_menu(part: HtmlElement) -> bool:
    links = [text_length(link) for link in part.iter("a")]
    return (
        len(links) >= MENU_LINKS
        and sum(links) <= MENU_NAME * len(links)
        and sum(links) > MENU_SHARE * text_length(part)
    )


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


def unfold_layout(tree: HtmlElement) -> None:
    """Makes of tables that only place things what they are: a stack of blocks."""
    for table in list(tree.iter("table")):
        cells = max(1, sum(1 for _ in table.iter("td", "th")))
        if table.xpath(".//table | .//h1 | .//h2") or text_length(table) > LAYOUT_CELL * cells:
            for part in (table, *table.iter("thead", "tbody", "tr", "td", "th")):
                part.tag = "div"


def text_length(part: HtmlElement) -> int:
    """Characters of text in a part, blanks left out."""
    return sum(len(text) - text.count(" ") for text in part.itertext())


def drop(part: HtmlElement) -> None:
    """Takes an element out, and leaves the text after it."""
    if part.getparent() is not None:
        part.drop_tree()


def _hidden(part: HtmlElement) -> bool:
    if part.tag in ("html", "body"):
        return False
    if part.get("role") in PANELS or LATER.fullmatch(part.get("id", "")):
        return False
    return "hidden" in part.attrib or bool(HIDING.search(part.get("style", "")))


def _around(tree: HtmlElement) -> Iterator[HtmlElement]:
    for part in tree.iter("*"):
        if part.tag in ("html", "body", "main", "h1", "a", "code", "pre", "table", "tr", "td"):
            continue
        if part.tag in AROUND or part.get("role") in ROLES or _named_so(part):
            yield part


def _named_so(part: HtmlElement) -> bool:
    words = _words(part)
    if part.tag == "header":
        words.add("header")
    if not words.isdisjoint(NOTICES) or PHRASES.search(_names(part)):
        return True
    return not words.isdisjoint(LINKS) and _is_of_links(part)


def _names(part: HtmlElement) -> str:
    return f"{part.get('class', '')} {part.get('id', '')}"


def _words(part: HtmlElement) -> set[str]:
    return {word.lower() for word in SPLIT.split(_names(part))}


def _is_of_links(part: HtmlElement) -> bool:
    if part.xpath(".//h1"):
        return False
    length = text_length(part)
    linked = sum(text_length(link) for link in part.iter("a"))
    return length < BRIEF or linked > LINK_SHARE * length
