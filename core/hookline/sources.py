"""Sources of an answer: as text that the prompt may hold, and as a header."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

HEADER_BYTES = 8000
"""Most bytes of a header's value; with its name it stays under the 8 KB that proxies pass on."""

_LINE_ENDS = re.compile(r"\r\n|[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]")
_UNSEEN = re.compile(
    "[\x00-\x08\x0e-\x1b\x1f\x7f-\x84\x86-\x9f\u00ad\u200b\u200e\u200f\u202a-\u202e"
    "\u2060-\u2064\u2066-\u206f\ufdd0-\ufdef\ufeff\ufff9-\ufffb\U000e0000-\U000e007f]"
)
_BRACKETS = re.compile(r"\[(\d[\d\s,;–-]*)\]")
_CITATION = re.compile(r"(?<![\w\])])\[\s*(\d+(?:\s*[,;–-]\s*\d+)*)\s*\]")


def quoted(text: str) -> str:
    """Foreign text as it may stand in a prompt: every line begins with ``> ``.

    So nothing in the text can end the quotation, whatever it says. Characters that are not seen
    (controls, zero-width, direction marks, tags) are taken out, and what looks like a citation,
    ``[3]``, gets spaces inside, so that it is no citation of ours; ``items[3]`` stays.
    """
    return "\n".join(f"> {line}" for line in _plain(text).split("\n"))


def in_line(text: str) -> str:
    """A foreign name or place as it may stand in one line of a prompt, with nothing in it that
    looks like a citation."""
    return _BRACKETS.sub(r"[ \1 ]", " ".join(_plain(text).split()))


def _plain(text: str) -> str:
    text = _UNSEEN.sub("", _LINE_ENDS.sub("\n", text))
    return _CITATION.sub(r"[ \1 ]", text)


def sources_header(sources: Sequence[Mapping[str, Any]], limit: int = HEADER_BYTES) -> str:
    """Sources as percent-encoded JSON of at most ``limit`` bytes, all of them ASCII.

    Where it would be longer the snippets are cut, all to the same length; where even none are too
    much, the last sources are left out.
    """
    whole = [dict(source) for source in sources]
    longest = max((len(source.get("snippet", "")) for source in whole), default=0)
    low, high = -1, longest
    while low < high:  # the longest length that fits
        middle = (low + high + 1) // 2
        if len(_encoded(_cut(whole, middle))) <= limit:
            low = middle
        else:
            high = middle - 1
    if low >= 0:
        return _encoded(_cut(whole, low))
    bare = _cut(whole, 0)
    while bare and len(_encoded(bare)) > limit:
        bare.pop()
    return _encoded(bare)


def _cut(sources: Sequence[Mapping[str, Any]], length: int) -> list[dict[str, Any]]:
    return [
        {**source, "snippet": source["snippet"][:length]} if "snippet" in source else dict(source)
        for source in sources
    ]


def _encoded(sources: Sequence[Mapping[str, Any]]) -> str:
    text = json.dumps(sources, ensure_ascii=False, separators=(",", ":"))
    # A lone surrogate has no UTF-8; such text can come from a file's name.
    return quote(text.encode("utf-8", "replace"), safe="")
