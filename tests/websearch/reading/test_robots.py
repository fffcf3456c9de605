"""robots.txt is asked for once, and obeyed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from hookline_websearch.fetch import Unread
from hookline_websearch.robots import SITES, Robots

RULES = b"""
User-agent: *
Disallow: /private
Allow: /private/open

User-agent: hookline
Disallow: /not-for-hookline
"""


class Site:
    def __init__(self, rules: bytes | None) -> None:
        self.rules = rules
        self.asked: list[str] = []

    async def __call__(self, url: str) -> bytes | None:
        self.asked.append(url)
        await asyncio.sleep(0)
        return self.rules


@pytest.mark.parametrize(
    ("agent", "path", "allowed"),
    [
        ("Other", "/private/x", False),
        ("Other", "/private/open", True),
        ("Other", "/not-for-hookline", True),
        ("Hookline", "/not-for-hookline/x", False),
        ("Hookline", "/private", True),
    ],
)
async def test_rules(agent: str, path: str, allowed: bool) -> None:
    site = Site(RULES)
    assert (await Robots(agent, site).refusal(f"https://a.test:8443{path}?q=1#f") == "") is allowed
    assert site.asked == ["https://a.test:8443/robots.txt"]


async def test_a_site_is_asked_once_an_hour_and_by_one_at_a_time() -> None:
    now = 0.0
    site = Site(RULES)
    robots = Robots("Other", site, lambda: now)
    await asyncio.gather(*(robots.refusal(f"http://a.test/{n}") for n in range(10)))
    assert len(site.asked) == 1
    now = 3700.0
    await robots.refusal("http://a.test/")
    assert len(site.asked) == 2


async def test_a_site_without_rules_allows_all_and_one_that_fails_nothing() -> None:
    assert not await Robots("Other", Site(b"")).refusal("http://a.test/private")
    now = 0.0
    site = Site(None)
    robots = Robots("Other", site, lambda: now)
    assert "does not answer" in await robots.refusal("http://a.test/")
    site.rules = b""
    assert "does not answer" in await robots.refusal("http://a.test/")
    now = 61.0
    assert not await robots.refusal("http://a.test/")


async def test_only_so_many_sites_are_remembered() -> None:
    site = Site(b"")
    robots = Robots("Other", site)
    for number in range(SITES + 1):
        await robots.refusal(f"http://{number}.test/")
    await robots.refusal(f"http://{SITES}.test/")
    assert len(site.asked) == SITES + 1
    await robots.refusal("http://0.test/")
    assert len(site.asked) == SITES + 2


async def test_what_is_no_rules_is_none() -> None:
    assert not await Robots("Other", Site(b"\xff\xfe<html>" * 1000)).refusal("http://a.test/x")


async def test_pages_that_the_rules_forbid_are_not_fetched(
    fetchers: Any, web: Any, answers: Callable[..., bytes]
) -> None:
    web.pages["/robots.txt"] = answers("User-agent: *\nDisallow: /secret", kind="text/plain")
    web.pages["/secret"] = web.pages["/open"] = answers("<p>text")
    web.pages["/to-secret"] = answers("", "302 Found", Location="/secret")
    async with fetchers() as fetcher:
        await fetcher.fetch(web.url("/open"))
        for path in ("/secret", "/to-secret"):
            with pytest.raises(Unread, match=r"robots\.txt does not allow"):
                await fetcher.fetch(web.url(path))
    assert web.paths == ["/open", "/to-secret"]
    async with fetchers(robots=False) as fetcher:
        assert (await fetcher.fetch(web.url("/secret"))).body == b"<p>text"


async def test_a_site_whose_rules_cannot_be_had_is_not_read(
    fetchers: Any, web: Any, answers: Callable[..., bytes]
) -> None:
    web.pages["/robots.txt"] = answers("", "503 Busy")
    web.pages["/"] = answers("<p>text")
    async with fetchers() as fetcher:
        with pytest.raises(Unread, match=r"robots\.txt"):
            await fetcher.fetch(web.url("/"))
