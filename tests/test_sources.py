"""Foreign text in prompts, and lists of sources in headers."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hookline.sources import HEADER_BYTES, in_line, quoted, sources_header


@given(st.text())
def test_nothing_leaves_a_quotation(text: str) -> None:
    assert all(line.startswith("> ") for line in quoted(text).splitlines())
    assert len(in_line(text).splitlines()) <= 1


@pytest.mark.parametrize(
    ("text", "stands"),
    [
        ("as shown in [3].", "> as shown in [ 3 ]."),
        ("[1, 2] and [4-6]", "> [ 1, 2 ] and [ 4-6 ]"),
        ("items[3] = f(x)[0]", "> items[3] = f(x)[0]"),
        ("one\u2028two\r\nthree", "> one\n> two\n> three"),
        ("ze\u200bro \x1b[2J \U000e0041", "> zero [2J "),
    ],
)
def test_what_stands_in_a_quotation(text: str, stands: str) -> None:
    assert quoted(text) == stands


def test_a_name_cites_nothing() -> None:
    assert in_line("report[3]\n[1] other") == "report[ 3 ] [ 1 ] other"


def sources(count: int, snippet: str) -> list[dict[str, Any]]:
    return [{"index": n + 1, "document": f"Nr {n}.pdf", "snippet": snippet} for n in range(count)]


def read(value: str) -> list[dict[str, Any]]:
    assert value.isascii() and value.isprintable() and " " not in value
    assert len(value) <= HEADER_BYTES
    found: list[dict[str, Any]] = json.loads(unquote(value))
    return found


def test_a_header_says_all_where_there_is_room() -> None:
    few = sources(3, 'Größe: "10 %"\n漢字')
    assert read(sources_header(few)) == few
    assert read(sources_header([])) == []


def test_snippets_are_cut_before_sources_are_left_out() -> None:
    found = read(sources_header(sources(20, "漢" * 500)))
    assert [source["index"] for source in found] == list(range(1, 21))
    lengths = {len(source["snippet"]) for source in found}
    assert len(lengths) == 1 and 0 < lengths.pop() < 500


def test_the_last_sources_are_left_out_where_even_no_snippets_fit() -> None:
    found = read(sources_header(sources(1000, "text")))
    assert 50 < len(found) < 1000
    assert [source["index"] for source in found] == list(range(1, len(found) + 1))
    assert {source["snippet"] for source in found} == {""}


def test_one_source_that_is_too_long_by_itself() -> None:
    assert read(sources_header([{"index": 1, "document": "x" * 9000, "snippet": ""}])) == []


def test_a_name_that_is_no_text() -> None:
    assert (
        read(sources_header([{"index": 1, "document": "\udcff", "snippet": ""}]))[0]["document"]
        == "?"
    )
