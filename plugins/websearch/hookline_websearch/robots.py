"""What sites allow robots to read: robots.txt (RFC 9309)."""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

import httpx
from protego import Protego

ROBOTS_MAX = 500 * 1024
"""Bytes of a robots.txt that are read; RFC 9309 asks for no more."""

SITES = 500
"""Sites whose rules are remembered."""

SECONDS = 3600.0
FAILED_SECONDS = 60.0
"""How long rules are remembered, and how long that there are none to be had."""

FetchRules = Callable[[str], Awaitable[bytes | None]]
"""From the URL of a robots.txt to its bytes; None where the site fails, so that nothing is allowed
there for now."""


@dataclass(slots=True)
class _Site:
    asking: asyncio.Lock = field(default_factory=asyncio.Lock)
    until: float = 0.0
    rules: Protego | None = None


class Robots:
    """Asks each site once an hour what ``agent`` may read."""

    def __init__(
        self, agent: str, fetch: FetchRules, now: Callable[[], float] = time.monotonic
    ) -> None:
        self._agent = agent
        self._fetch = fetch
        self._now = now
        self._sites: OrderedDict[str, _Site] = OrderedDict()

    async def refusal(self, url: str) -> str:
        """Why a page may not be read, as half a sentence; empty where it may."""
        rules = await self._rules(str(httpx.URL(url).join("/robots.txt")))
        if rules is None:
            return "the site does not answer, not even to say in robots.txt what may be read"
        return (
            "" if rules.can_fetch(url, self._agent) else "the site's robots.txt does not allow it"
        )

    async def _rules(self, url: str) -> Protego | None:
        site = self._sites.setdefault(url, _Site())
        self._sites.move_to_end(url)
        if len(self._sites) > SITES:
            self._sites.popitem(last=False)
        async with site.asking:
            if site.until <= self._now():
                await self._ask(url, site)
        return site.rules

    async def _ask(self, url: str, site: _Site) -> None:
        text = await self._fetch(url)
        # In a thread: half a megabyte of rules takes a seventh of a second.
        site.rules = None if text is None else await asyncio.to_thread(_parsed, text)
        site.until = self._now() + (FAILED_SECONDS if text is None else SECONDS)


def _parsed(text: bytes) -> Protego:
    return Protego.parse(text.decode("utf-8", "replace"))
