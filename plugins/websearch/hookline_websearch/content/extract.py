"""From bytes to text by kind of content, in whatever process this runs."""

from __future__ import annotations

import json

from hookline_websearch.content.charset import decode
from hookline_websearch.content.clean import clean
from hookline_websearch.content.html import read_html
from hookline_websearch.content.kinds import HTML, is_json
from hookline_websearch.content.result import Content


def extract(body: bytes, media_type: str, charset: str, url: str) -> Content:
    """The text of a body whose `kind` was found out and is not PDF."""
    text = decode(body, charset)
    if media_type in HTML:
        return read_html(text, url)
    if is_json(media_type):
        return Content(_fenced(_indented(text), "json"))
    if media_type in ("text/plain", "text/markdown", "text/x-markdown"):
        return Content(clean(text))
    return Content(_fenced(clean(text), media_type.rpartition("/")[2].removeprefix("x-")))


def _indented(text: str) -> str:
    try:
        return clean(json.dumps(json.loads(text), indent=1, ensure_ascii=False))
    except (ValueError, RecursionError):
        return clean(text)


def _fenced(text: str, language: str) -> str:
    fence = "```"
    while fence in text:
        fence += "`"
    return f"{fence}{language}\n{text}\n{fence}" if text else ""
