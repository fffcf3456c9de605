"""Links in what a person wrote."""

from __future__ import annotations

import re

LINK = re.compile(r"(?:https?://|(?<![\w./@-])www\.)[^\s<>\"'`\\^{}|\x00-\x1f\x7f-\x9f]+", re.I)
TRAILING = ".,;:!?*_~’”»、。，！？；：…"
PAIRS = {")": "(", "]": "[", "）": "（", "】": "【", "」": "「"}


def links_in(text: str, most: int = 3) -> list[str]:
    """The first web addresses in a text, each once, without what only follows them.

    An address that begins with ``www.`` gets ``https://``. Brackets that an address does not open
    itself, and punctuation after it, belong to the sentence.
    """
    found: dict[str, None] = {}
    for match in LINK.finditer(text):
        link = _without_sentence(match[0])
        if link.lower().startswith("www."):
            link = f"https://{link}"
        if link.partition("://")[2].strip("/"):
            found[link] = None
    return list(found)[:most]


def _without_sentence(link: str) -> str:
    for index, sign in enumerate(link):
        opening = PAIRS.get(sign)
        if opening and link.count(sign, 0, index + 1) > link.count(opening, 0, index):
            link = link[:index]
            break
    return link.rstrip(TRAILING)
