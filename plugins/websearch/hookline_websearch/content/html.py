"""The main content of an HTML page, as Markdown.

Two readings of a page are made. trafilatura finds the text of articles and tells it from what
surrounds it better than rules do; but it looks for one text in a page, and of lists, shops and
threads it takes a part. The other reading is all that is left once what pages mark as not their
content is gone. Which to take was measured on the Web Content Extraction Benchmark (2,008 real
pages of seven kinds, M. Foley 2026): the first for pages that call themselves articles; for others
where it has most of the second.

Either way, the Markdown is made from the page's own elements, so that code, tables, lists and
links are what they were.
"""

from __future__ import annotations

import contextlib
import copy
import re
from urllib.parse import urljoin

import lxml.html
from lxml import etree
from lxml.html import HtmlElement

from hookline_websearch.content import prune
from hookline_websearch.content.article import about, article
from hookline_websearch.content.clean import clean
from hookline_websearch.content.markdown import markdown
from hookline_websearch.content.result import Content
from hookline_websearch.content.select import keep_chosen
from hookline_websearch.content.sizes import letters

ARTICLE_SHARE = 0.2
OTHER_SHARE = 0.8
"""Of the stripped page's text, that trafilatura must find to be believed: in a page that calls
itself an article or the like, and in others."""

ARTICLES = re.compile(
    r'"@type"\s*:\s*\[?\s*"(?:\w*Article|BlogPosting|Product|Recipe|QAPage|DiscussionForumPosting)"'
)

HTML_MAX = 3_000_000
ARTICLE_MAX = 800_000
"""Characters of a page that are read, and with trafilatura: a million take it two seconds."""

THIN = 250
"""Characters of text below which a page may be one that scripts would fill."""

MAINS = ("//main", "//*[@role='main']", "//*[@itemprop='articleBody']", "//article")
MAIN_SHARE = 0.3
"""Of the page's text, that what is marked as the main part must have to be believed."""


def read_html(html: str, url: str) -> Content:
    """Reads a page. ``url`` is where it is from, for its links; a page without text gives an empty
    one."""
    tree = parse(html[:HTML_MAX])
    if tree is None:
        return Content("")
    has_scripts = bool(tree.xpath("//script"))
    share = ARTICLE_SHARE if _says_article(tree) else OTHER_SHARE
    page = about(tree, url)
    base = _joined(url, tree.xpath("string(//base/@href)"))
    chosen = article(tree, url) if len(html) <= ARTICLE_MAX else ""
    prune.remove_invisible(tree)
    prune.unfold_layout(tree)
    prune.remove_menus(tree)
    main = _stripped(tree)
    if chosen and len(chosen) >= share * len(" ".join(main.text_content().split())):
        main = keep_chosen(tree, chosen)
    text = clean(_render(main, base or url))
    return Content(
        text,
        page.title,
        page.site,
        page.date,
        scripts=has_scripts and len(text) < THIN,
        cut=len(html) > HTML_MAX,
    )


def parse(html: str) -> HtmlElement | None:
    """The tree of a page; None where there is none in it."""
    parser = lxml.html.HTMLParser(encoding="utf-8", remove_pis=True)
    with contextlib.suppress(etree.ParserError, etree.XMLSyntaxError):
        tree = lxml.html.document_fromstring(html.encode("utf-8", "replace"), parser=parser)
        return tree if isinstance(tree, HtmlElement) else None
    return None


def _says_article(tree: HtmlElement) -> bool:
    kinds = tree.xpath("//meta[@property='og:type']/@content")
    described = tree.xpath("//script[@type='application/ld+json']/text()")
    return any(str(kind).lower() in ("article", "product") for kind in kinds) or any(
        ARTICLES.search(str(text)) for text in described
    )


def _stripped(tree: HtmlElement) -> HtmlElement:
    """What is left of a copy of the page without what stands around its content."""
    tree = copy.deepcopy(tree)
    prune.remove_others(tree)
    prune.remove_around(tree)
    return _marked_main(tree)


def _marked_main(tree: HtmlElement) -> HtmlElement:
    for path in MAINS:
        found = tree.xpath(path)
        if len(found) == 1 and _share(found[0], tree) > MAIN_SHARE:
            return found[0]
    body = tree.find("body")
    return tree if body is None else body


def _share(part: HtmlElement, tree: HtmlElement) -> float:
    return letters(part.text_content()) / max(1, letters(tree.text_content()))


def _render(main: HtmlElement, url: str) -> str:
    for link in main.iter("a"):
        _point(link, url)
    if main.tag == "html":
        main = main.find("body") if main.find("body") is not None else main
    try:
        return markdown(etree.tostring(main, encoding="unicode", method="html"))
    except RecursionError:
        return str(main.text_content())


def _point(link: HtmlElement, url: str) -> None:
    """Makes a link whole, or no link where it leads nowhere."""
    target = _joined(url, link.get("href") or "")
    if target and not target.startswith(f"{url}#"):
        link.set("href", target)
    else:
        link.attrib.pop("href", None)


def _joined(url: str, reference: str) -> str:
    """The web address that a reference means; empty for what is none."""
    try:
        target = "".join(urljoin(url, reference.strip()).split())
    except ValueError:
        return ""
    return target if target.startswith(("http://", "https://")) else ""
