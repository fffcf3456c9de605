"""Kinds of content, and what a body really is."""

from __future__ import annotations

HTML = ("text/html", "application/xhtml+xml")
PDF = "application/pdf"
TEXTS = ("application/xml", "application/yaml", "application/x-yaml", "application/toml")
SNIFFED = 1024


def kind(media_type: str, body: bytes) -> str:
    """The media type that a body has: what was declared, unless it is missing, means "anything",
    or is contradicted by the first bytes. Empty for what is no text."""
    start = body[:SNIFFED].lstrip().lower()
    if start.startswith(b"%pdf-"):
        return PDF
    if media_type in ("", "application/octet-stream", "text/plain"):
        if start.startswith((b"<!doctype html", b"<html")):
            return "text/html"
        if b"\0" in start and not body.startswith((b"\xff\xfe", b"\xfe\xff")):
            return ""
        return "text/plain" if media_type != "text/plain" else media_type
    return media_type if media_type in HTML or media_type == PDF or _is_text(media_type) else ""


def is_json(media_type: str) -> bool:
    """Whether a media type is JSON."""
    return media_type.endswith(("/json", "+json"))


def _is_text(media_type: str) -> bool:
    return (
        media_type.startswith("text/")
        or media_type in TEXTS
        or media_type.endswith("+xml")
        or is_json(media_type)
    )
