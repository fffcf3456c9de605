"""What trafilatura finds in a page: its article, and what it says of itself."""

from __future__ import annotations

import copy
import logging
import warnings
from dataclasses import dataclass

from lxml.html import HtmlElement

from hookline_websearch.content.clean import one_line

with warnings.catch_warnings():
    # It can fetch through SOCKS proxies, and says so where the package for that is missing.
    warnings.simplefilter("ignore")
    from trafilatura import extract, extract_metadata

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class About:
    """A page's title, the name of its site, and its date in ISO 8601; empty where unknown."""

    title: str
    site: str
    date: str


def article(tree: HtmlElement, url: str) -> str:
    """The lines of the text that a page is about; nothing where none is found."""
    try:
        found = extract(copy.deepcopy(tree), url=url, output_format="txt", include_comments=False)
    except Exception:  # it has many dependencies, and pages try all of them
        log.info("no article can be extracted from %.200r", url, exc_info=True)
        return ""
    return found or ""


def about(tree: HtmlElement, url: str) -> About:
    """What a page says of itself."""
    title = tree.findtext(".//title") or ""
    try:
        # Not extensive: a year in a footer is not the date of the page.
        found = extract_metadata(copy.deepcopy(tree), default_url=url, extensive=False)
    except Exception:  # of hostile metadata its parsers make any kind of error
        log.info("nothing is known about %.200r", url, exc_info=True)
        return About(one_line(title), "", "")
    return About(
        one_line(found.title or title), one_line(found.sitename or "", 80), found.date or ""
    )
