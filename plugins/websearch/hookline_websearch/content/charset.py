"""Which characters the bytes of a page stand for."""

from __future__ import annotations

import codecs
import re

from charset_normalizer import from_bytes

BOMS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)

DECLARED = re.compile(
    rb"""<meta[^>]{0,500}?charset\s*=\s*["']?\s*([\w.:-]{2,40})"""
    rb"""|^\s*<\?xml[^>]{0,200}?encoding\s*=\s*["']([\w.:-]{2,40})""",
    re.I,
)
DECLARED_WITHIN = 4096
"""Bytes in which a page says its charset; browsers look into 1024, and pages take their time."""

GUESSED_FROM = 64 * 1024
"""Bytes from which a charset is guessed."""

CHARSETS = re.compile(
    r"(?!utf-7)(utf|ascii|iso|latin|cp\d|koi|kz|mac|gb|hz|big5|euc|shift|johab|ptcp|tis)", re.I
)
"""Which of Python's codecs are charsets of pages: "hex" and "unicode_escape" are none."""

AS_BROWSERS_DO = {
    **dict.fromkeys(("ascii", "iso8859-1", "latin-1"), "cp1252"),
    "iso8859-9": "cp1254",
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "shift_jis": "cp932",
    "euc_kr": "cp949",
    "big5": "big5hkscs",
}
"""Names that pages use for a larger charset than they say (WHATWG Encoding Standard)."""


def decode(body: bytes, declared: str = "") -> str:
    """The text of a page: by its byte order mark, the charset its headers declare, the one it
    declares itself, as UTF-8 where it is that, or as what it looks like."""
    for bom, name in BOMS:
        if body.startswith(bom):
            return body.decode(name, "replace")
    names = [_known(declared), _known(_declared_inside(body))]
    for name in filter(None, names):
        text = _decoded(body, name)
        if text is not None:
            return text
    return _guessed(body, next(filter(None, names), None))


def _declared_inside(body: bytes) -> str:
    match = DECLARED.search(body[:DECLARED_WITHIN])
    return (match[1] or match[2]).decode("ascii", "replace") if match else ""


def _known(name: str) -> str | None:
    try:
        found = codecs.lookup(name.strip()).name if name else ""
    except (LookupError, ValueError):
        return None
    return AS_BROWSERS_DO.get(found, found) if CHARSETS.match(found) else None


def _decoded(body: bytes, name: str) -> str | None:
    """The text, unless so much of it is wrong that the name must be."""
    text = body.decode(name, "replace")
    wrong = text.count("\ufffd")
    return text if wrong <= 2 + len(text) // 1000 else None


def _guessed(body: bytes, fallback: str | None) -> str:
    text = _decoded(body, "utf-8")
    if text is not None:
        return text
    best = from_bytes(body[:GUESSED_FROM]).best()
    return body.decode(best.encoding if best else fallback or "cp1252", "replace")
