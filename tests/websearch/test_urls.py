"""Which addresses are one page."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hookline_websearch.urls import canonical, is_web, site_of

SAME = (
    (
        "https://example.com/a/b?x=1&y=2",
        "http://example.com/a/b?y=2&x=1",
        "https://www.Example.com:443/a/b/?x=1&y=2#part",
        "https://example.com./a/b?x=1&y=2&utm_source=news&utm_medium=mail",
        "https://example.com/a/b?gclid=abc&x=1&y=2&fbclid=d",
        "https://example.com/a/b/amp/?x=1&y=2",
        "https://amp.example.com/a/b?x=1&y=2",
        "https://example.com/a/b?amp=1&x=1&y=2",
        "https://www.google.com/amp/s/example.com/a/b?x=1&y=2",
        "https://example-com.cdn.ampproject.org/c/s/example.com/a/b?x=1&y=2",
    ),
    ("https://example.com", "http://www.example.com/", "https://example.com/#top"),
    ("https://example.com/caf%C3%A9", "https://example.com/café"),
    ("https://example.com/story.amp.html", "https://example.com/story.html"),
)
DIFFERENT = (
    *("https://example.com/a", "https://example.com/A", "https://example.org/a"),
    *("https://example.com/a?id=1", "https://example.com/a?id=2", "https://example.com:8080/a"),
    *("https://news.example.com/a", "https://example.com/stamp", "https://example.com/#!/a"),
    *("https://example.com/campamp", "https://example.com/a?amp=12v"),
)


@pytest.mark.parametrize("spellings", SAME)
def test_spellings_of_one_page(spellings: tuple[str, ...]) -> None:
    assert len({canonical(url) for url in spellings}) == 1


def test_pages_that_differ() -> None:
    assert len({canonical(url) for url in DIFFERENT}) == len(DIFFERENT)


def test_what_is_no_address_of_the_web() -> None:
    for url in (
        "ftp://example.com",
        "javascript:alert(1)",
        "//example.com",
        "http://",
        "http://[x",
    ):
        assert not is_web(url)
    assert is_web("HTTPS://example.com")


def test_sites() -> None:
    assert site_of("https://www.example.com:8080/a") == "example.com"
    assert site_of("https://user@docs.example.com./") == "docs.example.com"
    assert site_of("http://[x") == ""


@given(st.text(alphabet="htps:/.aé[]@%?#&=1 9\\\n\x00-x"))
def test_no_address_breaks_the_search(text: str) -> None:
    for url in (text, f"http://{text}", f"https://a.example/{text}", f"http://a.example:{text}"):
        if is_web(url):
            assert canonical(url) and site_of(url) is not None
