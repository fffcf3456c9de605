from __future__ import annotations

import pytest

from hookline.engines.detokenizer import Detokenizer


def said(*parts: bytes) -> list[str]:
    detokenizer = Detokenizer()
    return [detokenizer.feed(part) for part in parts]


def test_a_character_comes_with_the_token_that_completes_it() -> None:
    raw = "a🙂b".encode()
    assert said(raw[:2], raw[2:4], raw[4:]) == ["a", "", "🙂b"]


@pytest.mark.parametrize("text", ["é", "€", "🙂", "👩‍👩‍👧", "日本語"])
def test_single_bytes_make_whole_characters(text: str) -> None:
    parts = said(*[bytes([byte]) for byte in text.encode()])
    assert "".join(parts) == text
    assert all("\ufffd" not in part for part in parts)


def test_invalid_bytes_are_replaced() -> None:
    assert said(b"a\xffb") == ["a\ufffdb"]
    assert said(b"\xe2\x82", b"x") == ["", "\ufffdx"]


def test_an_incomplete_end_is_not_said() -> None:
    assert said(b"ok", b"\xf0\x9f") == ["ok", ""]


def test_a_control_token_is_written_out_and_ends_what_was_incomplete() -> None:
    detokenizer = Detokenizer()
    assert detokenizer.feed(b"\xf0\x9f") == ""
    assert detokenizer.control(b"<|x|>") == "<|x|>"
    assert detokenizer.feed(b"a") == "a"
