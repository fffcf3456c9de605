"""Addresses in what people write."""

from __future__ import annotations

import pytest

from hookline_websearch.links import links_in


@pytest.mark.parametrize(
    ("text", "links"),
    [
        ("see https://a.test/b.", ["https://a.test/b"]),
        ("(see https://a.test/b_(c))", ["https://a.test/b_(c)"]),
        ("[name](https://a.test/x) and <https://b.test>", ["https://a.test/x", "https://b.test"]),
        ("look at www.a.test/page, please", ["https://www.a.test/page"]),
        ("HTTPS://A.test!", ["HTTPS://A.test"]),
        ('<a href="http://a.test/?q=1&r=2">', ["http://a.test/?q=1&r=2"]),
        ("see「https://a.test/日本」。", ["https://a.test/日本"]),
        ("**https://a.test/x** and `https://b.test`", ["https://a.test/x", "https://b.test"]),
        ("http://a.test http://a.test", ["http://a.test"]),
        ("http://[::1]:80/x", ["http://[::1]:80/x"]),
        ("me@www.a.test, ftp://a.test, a.test/x, https://", []),
        (
            "http://1.test http://2.test http://3.test http://4.test",
            [
                "http://1.test",
                "http://2.test",
                "http://3.test",
            ],
        ),
    ],
)
def test_links(text: str, links: list[str]) -> None:
    assert links_in(text) == links


def test_more_can_be_asked_for() -> None:
    assert len(links_in(" ".join(f"http://{n}.test" for n in range(9)), 8)) == 8
