"""What counts as an image's URL."""

from __future__ import annotations

import pytest

from hookline_vision.data_url import DataUrl, parse
from hookline_vision.refusal import Refused


@pytest.mark.parametrize(
    ("url", "form", "data"),
    [
        ("data:image/png;base64,iVBO", "PNG", "iVBO"),
        ("DATA:Image/PNG;BASE64,iVBO", "PNG", "iVBO"),
        ("data:image/jpg;base64,/9j/", "JPEG", "/9j/"),
        ("data:image/webp;charset=utf-8;base64,UklG", "WEBP", "UklG"),
        ("data: image/gif ; base64 ,R0lG", "GIF", "R0lG"),
        ("data:image/tiff;base64,", "TIFF", ""),
        ("data:image/bmp;base64,a,b", "BMP", "a,b"),
    ],
)
def test_data_urls(url: str, form: str, data: str) -> None:
    assert parse(url) == DataUrl(form, data)


@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("http://127.0.0.1/a.png", "'http:' addresses are not read, and nothing is fetched"),
        ("HTTPS://example.org/a.png", "'https:' addresses are not read"),
        ("file:///etc/passwd", "'file:' addresses are not read"),
        ("blob:https://example.org/1", "'blob:' addresses are not read"),
        ("/etc/passwd", "addresses without a scheme are not read"),
        ("iVBORw0KGgo=", "addresses without a scheme are not read"),
        ("", "addresses without a scheme are not read"),
        (" data:image/png;base64,iVBO", "are not read"),
        ("data:image/png;base64", "no comma"),
        ("data:image/png;" + "a=b;" * 100 + "base64,iVBO", "no comma"),
        ("data:image/png,%89PNG", "does not say that it is base64"),
        ("data:image/png;base64;charset=utf-8,iVBO", "does not say that it is base64"),
        ("data:;base64,iVBO", "an image without a type is not read"),
        ("data:image/svg+xml;base64,PHN2", "'image/svg+xml' is not read"),
        ("data:text/html;base64,PHN2", "'text/html' is not read"),
    ],
)
def test_what_is_refused(url: str, told: str) -> None:
    with pytest.raises(Refused, match="like data:image/png;base64,") as refused:
        parse(url)
    assert told in str(refused.value)


def test_the_size_is_known_before_anything_is_decoded() -> None:
    assert parse("data:image/png;base64," + "A" * 4_000_000).size == 3_000_000
