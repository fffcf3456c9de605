"""Pages that were read are kept for a while."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Any

import pytest

from hookline_websearch.cache import FILE_NAME, PageCache
from hookline_websearch.page import Page


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


def page(url: str, text: str = "text") -> Page:
    return Page(url, f"{url}/end", "Title", "site", date(2026, 5, 4), text, "text/html", "note")


async def opened(folder: Path, **about: Any) -> PageCache:
    cache = PageCache(folder, **{"seconds": 60, "most_bytes": 10**6, **about})
    await cache.open()
    return cache


async def test_a_page_comes_back_until_it_is_too_old(tmp_path: Path) -> None:
    clock = Clock()
    cache = await opened(tmp_path, now=clock)
    await cache.keep(page("http://a"))
    assert await cache.get("http://a") == page("http://a")
    assert await cache.get("http://b") is None
    clock.now += 59
    assert await cache.get("http://a") is not None
    clock.now += 2
    assert await cache.get("http://a") is None
    await cache.close()


async def test_pages_survive_a_restart_but_not_other_rules(tmp_path: Path) -> None:
    for rules, found in (("one", False), ("one", True), ("two", False)):
        cache = await opened(tmp_path, rules=rules)
        assert (await cache.get("http://a") is not None) is found
        await cache.keep(page("http://a"))
        await cache.close()


async def test_pages_not_used_for_longest_are_forgotten(tmp_path: Path) -> None:
    clock = Clock()
    cache = await opened(tmp_path, most_bytes=2500, now=clock)
    noise = [chr(33 + n * 7919 % 90) * (n % 3 + 1) for n in range(700)]
    for number in range(41):
        clock.now += 0.1
        await cache.keep(page(f"http://{number}", "".join(noise[number:])))
    await cache.get("http://40")
    kept = [n for n in range(41) if await cache.get(f"http://{n}") is not None]
    assert 40 in kept
    assert 0 not in kept
    assert len(kept) < 25
    await cache.close()


async def test_a_page_larger_than_the_cache_is_not_kept(tmp_path: Path) -> None:
    cache = await opened(tmp_path, most_bytes=10)
    await cache.keep(page("http://a"))
    assert await cache.get("http://a") is None
    await cache.close()


async def test_no_seconds_no_cache(tmp_path: Path) -> None:
    cache = await opened(tmp_path, seconds=0)
    await cache.keep(page("http://a"))
    assert await cache.get("http://a") is None
    assert not (tmp_path / FILE_NAME).exists()
    await cache.close()


@pytest.mark.parametrize("damage", ["directory", "noise"])
async def test_a_file_that_cannot_be_used_is_a_warning(
    tmp_path: Path, damage: str, caplog: pytest.LogCaptureFixture
) -> None:
    if damage == "directory":
        (tmp_path / FILE_NAME).mkdir()
    else:
        (tmp_path / FILE_NAME).write_bytes(b"no database" * 500)
    cache = await opened(tmp_path)
    await cache.keep(page("http://a"))
    assert await cache.get("http://a") is None
    assert "pages are not cached" in caplog.text
    await cache.close()
