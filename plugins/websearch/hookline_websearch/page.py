"""A page of the web, as it was read."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date


@dataclass(frozen=True, slots=True)
class Page:
    """What became of one address.

    ``url`` is what was asked for, ``final_url`` where redirects led. ``text`` is Markdown, cleaned
    of invisible characters, and untrusted all the same. Without text, ``note`` says why as half a
    sentence ("its robots.txt forbids it"); with text, what is missing of it, if anything.
    ``date`` is when the page says that it was published. ``late`` is whether it needs scripts, and
    the browser had not run them in time: then the text is what there is without them.
    """

    url: str
    final_url: str = ""
    title: str = ""
    site: str = ""
    date: date | None = None
    text: str = ""
    media_type: str = ""
    note: str = ""
    late: bool = False


@dataclass(frozen=True, slots=True)
class Look:
    """A page as a browser shows it: its text, its design in words, and a picture (PNG).

    Where the browser could not show it, only ``page`` says something.
    """

    page: Page
    design: str = ""
    screenshot: bytes = b""
