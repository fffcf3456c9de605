"""HTML as Markdown: tables, code with its language, lists and links stay what they are."""

from __future__ import annotations

import re
from typing import Any

from bs4 import BeautifulSoup, Tag
from markdownify import MarkdownConverter

LANGUAGE = re.compile(
    r"(?:^|\s|_)(?:language|lang|highlight(?:-source)?|brush:|sourceCode|codehilite)"
    r"[-_:\s]\s*([A-Za-z][\w+#.-]{0,20})"
)
NO_LANGUAGE = {
    "text",
    "none",
    "plaintext",
    "default",
    "notranslate",
    "highlight",
    "wrapper",
    "block",
}
BLANKS = re.compile(r"\s+")
COLUMNS_MAX = 100


class _Converter(MarkdownConverter):
    """What markdownify does, with fences that hold whatever the code is."""

    def convert_pre(self, el: Tag, text: str, parent_tags: set[str]) -> str:
        code = el.get_text().strip("\n")
        if not code.strip():
            return ""
        fence = "```"
        while fence in code:
            fence += "`"
        return f"\n\n{fence}{language(el)}\n{code}\n{fence}\n\n"

    def convert_td(self, el: Tag, text: str, parent_tags: set[str]) -> str:
        return _cell(el, text)

    def convert_th(self, el: Tag, text: str, parent_tags: set[str]) -> str:
        return _cell(el, text)


def markdown(html: str) -> str:
    """HTML as Markdown. Raises RecursionError for what is nested a thousand deep."""
    return str(
        _Converter(
            heading_style="ATX",
            bullets="-",
            strip=["img", "picture", "figure"],
            escape_asterisks=False,
            escape_underscores=False,
            autolinks=False,
        ).convert_soup(BeautifulSoup(html, "lxml"))
    )


def _cell(el: Tag, text: str) -> str:
    columns = str(el.get("colspan", ""))
    wide = min(int(columns), COLUMNS_MAX) if columns.isdecimal() else 1
    return " " + BLANKS.sub(" ", text.strip()).replace("|", "\\|") + " |" * max(1, wide)


def language(pre: Tag) -> str:
    """The language of a code block by the classes of it, of what is in it, or of what is around
    it; empty where none says."""
    inner = pre.find("code")
    around = [parent for parent, _ in zip(pre.parents, range(2), strict=False)]
    for tag in (inner, pre, *around):
        if not isinstance(tag, Tag):
            continue
        named = tag.get("data-lang") or tag.get("data-language")
        match = LANGUAGE.search(_classes(tag))
        found = str(named) if named else match[1] if match else ""
        if found and found.lower() not in NO_LANGUAGE:
            return re.sub(r"[^\w+#.-]", "", found.lower())
    return ""


def _classes(tag: Tag) -> str:
    value: Any = tag.get("class") or ""
    return value if isinstance(value, str) else " ".join(value)
