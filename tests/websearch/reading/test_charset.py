"""Which characters bytes stand for."""

from __future__ import annotations

import pytest

from hookline_websearch.content.charset import decode

POLISH = "Zażółć gęślą jaźń"
RUSSIAN = "Съешь же ещё этих мягких французских булок, да выпей чаю. " * 3
JAPANESE = "いろはにほへと ちりぬるを わかよたれそ つねならむ。" * 4


@pytest.mark.parametrize(
    ("body", "declared", "text"),
    [
        (POLISH.encode(), "", POLISH),
        (POLISH.encode(), "utf-8", POLISH),
        (POLISH.encode("iso-8859-2"), "ISO-8859-2", POLISH),
        (POLISH.encode("utf-8-sig"), "iso-8859-1", POLISH),
        (POLISH.encode("utf-16"), "", POLISH),
        (POLISH.encode(), "nonsense", POLISH),
        (POLISH.encode(), "hex", POLISH),
        ("“quoted” – it’s".encode("cp1252"), "iso-8859-1", "“quoted” – it’s"),
        (RUSSIAN.encode("cp1251"), "", RUSSIAN),
        (RUSSIAN.encode("cp1251"), "utf-8", RUSSIAN),
        (JAPANESE.encode("shift_jis"), "", JAPANESE),
        (JAPANESE.encode("euc_jp"), "EUC-JP", JAPANESE),
        (b"+ADw-script", "utf-7", "+ADw-script"),
        ("漢字".encode("gb18030"), "gb2312", "漢字"),
        (b"", "", ""),
    ],
)
def test_decode(body: bytes, declared: str, text: str) -> None:
    assert decode(body, declared) == text


@pytest.mark.parametrize(
    "declaration",
    [
        '<meta charset="iso-8859-2">',
        "<meta charset=iso-8859-2>",
        '<META HTTP-EQUIV="Content-Type" CONTENT="text/html; charset=iso-8859-2">',
        '<?xml version="1.0" encoding="iso-8859-2"?>',
    ],
)
def test_what_a_page_declares_itself(declaration: str) -> None:
    page = f"{declaration}<p>{POLISH}</p>"
    assert decode(page.encode("iso-8859-2")) == page


def test_bytes_that_are_no_text_become_text_all_the_same() -> None:
    assert isinstance(decode(bytes(range(256)) * 4, "utf-8"), str)
