"""What a body really is, and the text of what is no HTML."""

from __future__ import annotations

import pytest

from hookline_websearch.content.extract import extract
from hookline_websearch.content.kinds import kind


@pytest.mark.parametrize(
    ("declared", "body", "found"),
    [
        ("text/html", b"<p>x", "text/html"),
        ("text/html", b"%PDF-1.7 ...", "application/pdf"),
        ("application/octet-stream", b"%PDF-1.7 ...", "application/pdf"),
        ("", b"  <!DOCTYPE html><p>x", "text/html"),
        ("text/plain", b"<html><p>x", "text/html"),
        ("text/plain", b"a <html> in a text", "text/plain"),
        ("", b"words", "text/plain"),
        ("", b"\x7fELF\x00\x00", ""),
        ("text/plain", b"PK\x03\x04\x00\x00", ""),
        ("text/plain", "text".encode("utf-16"), "text/plain"),
        ("application/json", b"{}", "application/json"),
        ("application/ld+json", b"{}", "application/ld+json"),
        ("application/rss+xml", b"<rss/>", "application/rss+xml"),
        ("text/markdown", b"# x", "text/markdown"),
        ("application/msword", b"x", ""),
        ("application/wasm", b"x", ""),
    ],
)
def test_kind(declared: str, body: bytes, found: str) -> None:
    assert kind(declared, body) == found


@pytest.mark.parametrize(
    ("body", "media_type", "text"),
    [
        (b"two\r\nlines\x00", "text/plain", "two\nlines"),
        (b"# Title\n\n| a | b |\n", "text/markdown", "# Title\n\n| a | b |"),
        (
            b'{"b":[1,"\xc3\xa9"]}',
            "application/json",
            '```json\n{\n "b": [\n  1,\n  "é"\n ]\n}\n```',
        ),
        (b"{not json", "application/json", "```json\n{not json\n```"),
        (b"[" * 100_000, "application/json", "```json\n" + "[" * 100_000 + "\n```"),
        (b"a: 1", "application/x-yaml", "```yaml\na: 1\n```"),
        (b"a\n```\nb", "text/css", "````css\na\n```\nb\n````"),
        (b"", "application/json", ""),
    ],
)
def test_extract(body: bytes, media_type: str, text: str) -> None:
    assert extract(body, media_type, "", "http://a.test/").text == text
