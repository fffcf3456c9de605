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

WESTERN = "cp1252"

CHAOS_MARGIN = 0.05
"""How much worse than the best an encoding may fit and still be taken for as good."""

CONTROLS_MAX = 0.05
"""The part of a text that may be control characters."""

_CONTROLS = bytes([*range(9), *range(14, 27), *range(28, 32), 127])
"""Bytes that are in no text; escape is in some."""

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
    """Whether bytes are no text: they hold zeros or many controls, and are not UTF-16 or 32."""
    sample = data[:SAMPLE]
    if any(data.startswith(mark) for mark, _ in BYTE_ORDER_MARKS) or _wide(sample) is not None:
        return False
    controls = len(sample) - len(sample.translate(None, _CONTROLS))
    return b"\0" in sample or controls > len(sample) * CONTROLS_MAX


def clean(text: str) -> str:
    """Text without characters that cannot be stored or seen; lines stay as many as they are."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    return _UNWANTED.sub("", text)


def extends_ascii(encoding: str) -> bool:
    """Whether there is such an encoding and it is one for texts, not escapes or an archive."""
    try:
        return _ASCII.decode(encoding, errors="replace") == _ASCII.decode("ascii")
    except (LookupError, UnicodeError, ValueError):
        return False


def _declared(data: bytes) -> str | None:
    head = data[:2048]
    found = _META_CHARSET.search(head) or _XML_ENCODING.search(head)
    encoding = found[1].decode() if found is not None else ""
    return encoding if extends_ascii(encoding) else None


def _guessed(data: bytes) -> str:
    import charset_normalizer

    matches = charset_normalizer.from_bytes(data[:SAMPLE])
    best = matches.best()
    if best is None:
        return WESTERN
    # Short texts fit many encodings about as well; then the one that is met most often it is.
    western = (match for match in matches if match.encoding == WESTERN)
    as_good = any(match.chaos <= best.chaos + CHAOS_MARGIN for match in western)
    return WESTERN if as_good else best.encoding


def _wide(sample: bytes) -> str | None:
    """UTF-16 without a mark: of letters that are ASCII, every other byte is zero."""
    if len(sample) % 2:
        sample = sample[:-1]
    even, odd = sample[::2].count(0), sample[1::2].count(0)
    if (not even and not odd) or (even and odd):
        return None
    encoding = "utf-16-le" if odd else "utf-16-be"
    text = sample.decode(encoding, errors="replace")
    seen = sum(letter.isprintable() or letter.isspace() for letter in text)
    return encoding if max(even, odd) > len(text) // 4 and seen == len(text) else None
