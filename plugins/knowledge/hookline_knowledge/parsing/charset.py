"""Bytes as text, whatever their encoding."""

from __future__ import annotations

import codecs
import re

BYTE_ORDER_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)

SAMPLE = 200_000
"""Bytes from which an encoding is guessed."""

_META_CHARSET = re.compile(rb"<meta[^>]{0,200}?charset\s*=\s*[\"']?\s*([\w.:-]{1,40})", re.I)
_XML_ENCODING = re.compile(rb"^\s*<\?xml[^>]{0,200}?encoding\s*=\s*[\"']([\w.:-]{1,40})", re.I)
_ASCII = rb"<p>\x41 &amp; " + b"a" * 70
"""Says the same in every encoding that a text may declare; too long a label for ``idna``."""

_UNWANTED = re.compile("[\x00-\x08\x0e-\x1f\x7f\ufdd0-\ufdef\ufffe\uffff\ud800-\udfff]")


def decode(data: bytes) -> str:
    """Text of a file: by its byte order mark, as UTF-8, by what it declares, or by a guess."""
    for mark, encoding in BYTE_ORDER_MARKS:
        if data.startswith(mark):
            return data.decode(encoding, errors="replace")
    wide = _wide(data[:SAMPLE])
    if wide is not None:
        return data.decode(wide, errors="replace")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return data.decode(_declared(data) or _guessed(data), errors="replace")


def is_binary(data: bytes) -> bool:
    """Whether bytes are no text: they hold zeros, and are not UTF-16 or UTF-32."""
    if any(data.startswith(mark) for mark, _ in BYTE_ORDER_MARKS):
        return False
    sample = data[:SAMPLE]
    return b"\0" in sample and _wide(sample) is None


def clean(text: str) -> str:
    """Text without characters that cannot be stored or seen; lines stay as many as they are."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    return _UNWANTED.sub("", text)


def extends_ascii(encoding: str) -> bool:
    """Whether there is such an encoding and it is one for texts, not escapes or an archive."""
    try:
        return _ASCII.decode(encoding) == _ASCII.decode("ascii")
    except (LookupError, UnicodeError, ValueError):
        return False


def _declared(data: bytes) -> str | None:
    head = data[:2048]
    found = _META_CHARSET.search(head) or _XML_ENCODING.search(head)
    encoding = found[1].decode() if found is not None else ""
    return encoding if extends_ascii(encoding) else None


def _guessed(data: bytes) -> str:
    import charset_normalizer

    best = charset_normalizer.from_bytes(data[:SAMPLE]).best()
    return best.encoding if best is not None else "cp1252"


def _wide(sample: bytes) -> str | None:
    """UTF-16 without a mark: every other byte is zero in most languages' spaces and digits."""
    if len(sample) % 2:
        sample = sample[:-1]
    even, odd = sample[::2].count(0), sample[1::2].count(0)
    if odd > len(sample) // 8 and not even:
        return "utf-16-le"
    if even > len(sample) // 8 and not odd:
        return "utf-16-be"
    return None
