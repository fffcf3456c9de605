"""What was read of a document."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Content:
    """The text of a document, as Markdown, and what it says of itself.

    ``date`` is ISO 8601 or empty. ``scripts`` says that little was found in a page that has
    scripts, which might write more; ``cut`` that the text is only the beginning.
    """

    text: str
    title: str = ""
    site: str = ""
    date: str = ""
    scripts: bool = False
    cut: bool = False
