"""One list from many."""

from __future__ import annotations

from datetime import date

from hookline_websearch import Hit
from hookline_websearch.merging import at_most, merged

A, B, C = (Hit(f"https://{name}.example/") for name in "abc")


def test_what_several_lists_have_comes_first() -> None:
    assert merged([[A, B], [C, B]]) == [B, A, C]
    assert merged([[A, B, C]]) == [A, B, C]
    assert merged([]) == []


def test_the_places_of_engines_count_each() -> None:
    by_three = Hit(B.url, places=(3, 4, 2))
    assert [hit.url for hit in merged([[Hit(A.url, places=(1,)), by_three]])] == [B.url, A.url]


def test_duplicates_are_one_with_what_each_knows() -> None:
    first = Hit("http://www.example.com/a?utm_source=x", "Title", "short")
    other = Hit("https://example.com/a/", "Other", "a longer snippet", date(2026, 3, 2))
    (hit,) = merged([[first], [other]])
    assert hit == Hit("https://example.com/a/", "Title", "a longer snippet", date(2026, 3, 2))


def test_what_is_no_web_address_is_left_out() -> None:
    assert merged([[Hit("ftp://a.example/"), Hit("javascript:alert(1)"), A]]) == [A]


def test_a_site_gets_only_so_many() -> None:
    pages = [Hit(f"https://www.a.example/{n}") for n in range(4)]
    assert list(at_most([*pages[:3], B, pages[3]], 2)) == [*pages[:2], B]
