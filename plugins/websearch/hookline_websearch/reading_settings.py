"""What can be set about fetching and reading pages."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, Field, IPvAnyNetwork


class ReadingSettings(BaseModel):
    """The part of ``[plugin.websearch]`` that is about pages."""

    allowed_networks: list[IPvAnyNetwork] = Field(
        [],
        description="Networks that may be read although they are not public, such as "
        '"10.20.0.0/16" of an intranet.',
    )
    allowed_ports: list[Annotated[int, Field(ge=1, le=65535)]] = Field(
        [80, 443], min_length=1, description="Ports of web servers that may be asked."
    )
    user_agent: str = Field(
        "Mozilla/5.0 (compatible; Hookline)",
        min_length=1,
        max_length=200,
        pattern=r"^[\x20-\x7e]+$",
        description="How requests for pages introduce themselves.",
    )
    robots_agent: str = Field(
        "Hookline", pattern=r"^[A-Za-z_-]+$", description="The name to look for in robots.txt."
    )
    robots: bool = Field(True, description="Read only what a site's robots.txt allows.")
    max_page_mb: float = Field(
        5, gt=0, le=100, description="Megabytes of a page, decompressed, that are read."
    )
    max_page_chars: int = Field(
        200_000, ge=1000, le=5_000_000, description="Characters of a page's text that are kept."
    )
    max_redirects: int = Field(5, ge=0, le=20, description="Redirects that are followed.")
    parallel_pages: int = Field(
        16, ge=1, le=100, description="Pages that are fetched at once, over all requests."
    )
    reading_processes: int = Field(
        2, ge=1, le=16, description="Processes that extract text from pages."
    )
    reading_seconds: float = Field(
        10, gt=0, le=60, description="Seconds that extracting the text of one page may take."
    )
    cache_seconds: float = Field(
        3600, ge=0, description="Seconds that a page which was read is used again. 0: no cache."
    )
    cache_mb: float = Field(64, gt=0, le=10_000, description="Megabytes of pages that are kept.")
    browser: bool = Field(
        True,
        description="Read pages that need scripts, and look at links in messages, with an "
        "installed Chromium. Needs the extra 'browser'.",
    )
    browser_path: Path | None = Field(
        None, description="The Chromium to use; else the one on the PATH."
    )
    browser_seconds: float = Field(
        15, gt=0, le=120, description="Seconds that the browser may take for one page."
    )
    browser_mb: float = Field(
        30, gt=0, le=1000, description="Megabytes that the browser may load for one page."
    )
    browser_idle_seconds: float = Field(
        120, ge=0, description="Seconds without work after which the browser is closed."
    )
