"""What readers do not see does not reach the model."""

from __future__ import annotations

import pytest

from hookline_websearch.content.clean import clean, one_line


@pytest.mark.parametrize(
    ("text", "cleaned"),
    [
        ("a\x00b\x07c\x1b[31md", "abc[31md"),
        ("ig\u200bno\u200cre\u2060 \u00adthis\ufeff", "ignore this"),
        ("\u202eevil\u202c \u2066x\u2069", "evil x"),
        ("hid\U000e0068\U000e0069den", "hidden"),
        ("a\r\nb\rc\u2028d\u2029e\u0085f", "a\nb\nc\nd\ne\nf"),
        ("a  \n\n\n\n\nb\t\n", "a\n\nb"),
        ("a\ud800b", "ab"),
        ("می\u200cخواهم", "می\u200cخواهم"),
        ("👩\u200d💻", "👩\u200d💻"),
        ("  code\n    indented", "code\n    indented"),
        ("naïve – “quoted” ½ 日本", "naïve – “quoted” ½ 日本"),
    ],
)
def test_clean(text: str, cleaned: str) -> None:
    assert clean(text) == cleaned


def test_a_title_is_one_line_of_bounded_length() -> None:
    assert one_line(" a\r\nSet-Cookie:\tx\u2028b ") == "a Set-Cookie: x b"
    assert one_line("word " * 100, 12) == "word word w…"
