"""What pages call their parts: by elements, roles, and the words in ``class`` and ``id``."""

from __future__ import annotations

import re

from lxml.html import HtmlElement

NEVER = (
    *("script", "style", "template", "svg", "canvas", "iframe", "object", "embed"),
    *("link", "meta", "base", "audio", "video", "source", "track", "map", "area", "dialog"),
    *("button", "select", "input", "textarea", "progress", "meter", "datalist"),
)
"""Elements that hold no text for readers."""

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

PANELS = {"tabpanel", "region"}
"""Roles of parts that readers unfold."""

LATER = re.compile(r"S:\w+")
"""Ids of parts that a script of React moves to their place and shows."""

SPLIT = re.compile(r"[^A-Za-z0-9]+|(?<=[a-z0-9])(?=[A-Z])")


def is_hidden(part: HtmlElement) -> bool:
    """Whether readers do not see it."""
    if part.tag in ("html", "body") or part.get("role") in PANELS:
        return False
    if LATER.fullmatch(part.get("id", "")):
        return False
    return "hidden" in part.attrib or bool(HIDING.search(part.get("style", "")))


def is_around(part: HtmlElement) -> bool:
    """Whether it is called something that is never content."""
    if part.tag in AROUND or part.get("role") in ROLES:
        return True
    return not words(part).isdisjoint(NOTICES) or bool(PHRASES.search(_names(part)))


def may_be_around(part: HtmlElement) -> bool:
    """Whether it is called something that mostly is not content."""
    return part.tag == "header" or not words(part).isdisjoint(LINKS)


def is_about_others(part: HtmlElement) -> bool:
    """Whether it is called a part about other pages."""
    return not words(part).isdisjoint(OTHERS)


def heads_others(heading: HtmlElement) -> bool:
    """Whether a heading says that other pages follow."""
    return bool(ABOUT_OTHERS.match(" ".join(heading.text_content().split())))


def words(part: HtmlElement) -> set[str]:
    """The words of its class and id."""
    return {word.lower() for word in SPLIT.split(_names(part))}


def _names(part: HtmlElement) -> str:
    return f"{part.get('class', '')} {part.get('id', '')}"
