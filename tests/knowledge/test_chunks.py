"""Passages: of the right size, whole together, and each exactly where it says it is."""

from __future__ import annotations

import re
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hookline import Section
from hookline_knowledge.chunks import chunked, merged
from hookline_knowledge.locations import joined, numbered

TEXT = (
    "The house has rules. After ten it is quiet. Nobody knows why!\n\n"
    "The cellar is locked; ask for the key.\nThe attic is not.\n\n\n"
) * 12
TEXTS = st.text(st.sampled_from("abc .,!?\n\t-\u00e4\u4e2d"), max_size=400)


def count(text: str) -> int:
    """Words and marks: a tokenizer that needs no model."""
    return len(re.findall(r"\w+|[^\w\s]", text))


def test_a_word_without_end_is_cut_by_its_length() -> None:
    sections = [Section("x" * 20_000, "")]
    found = list(chunked(sections, lambda text: len(text.split()), 64))
    assert max(len(chunk.text) for chunk in found) <= 64 * 4 + 100
    assert "".join(chunk.text for chunk in found) == "x" * 20_000


def test_no_passage_is_larger_than_allowed() -> None:
    for size in (1, 7, 50, 10_000):
        assert all(count(chunk.text) <= size for chunk in chunked([Section(TEXT)], count, size))


def test_passages_end_where_sentences_do() -> None:
    chunks = list(chunked([Section(TEXT)], count, 30))
    assert len(chunks) > 5
    assert all(chunk.text.rstrip()[-1] in ".!?" for chunk in chunks)


@given(st.lists(TEXTS, max_size=4), st.integers(1, 30), st.integers(0, 15))
def test_put_together_passages_are_the_text(texts: list[str], size: int, overlap: int) -> None:
    sections = [Section(text, f"page {number}") for number, text in enumerate(texts, 1)]
    chunks = list(chunked(sections, count, size, min(overlap, size // 2)))
    assert all(chunk.text.strip() for chunk in chunks)
    assert all(chunk.text == texts[chunk.section][chunk.start : chunk.end] for chunk in chunks)
    whole = merged(chunks)
    assert [chunk.text.strip() for chunk in whole] == [t.strip() for t in texts if t.strip()]
    assert [chunk.location for chunk in whole] == [s.location for s in sections if s.text.strip()]


@given(TEXTS, st.integers(2, 30), st.integers(1, 15))
def test_passages_share_as_much_as_is_asked_and_no_more(text: str, size: int, overlap: int) -> None:
    overlap = min(overlap, size // 2)
    chunks = list(chunked([Section(text)], count, size, overlap))
    assert all(count(chunk.text) <= size for chunk in chunks)
    for one, other in pairwise(chunks):
        assert one.start < other.start <= one.end < other.end
        assert count(text[other.start : one.end]) <= overlap


def test_what_passages_share_begins_with_a_sentence() -> None:
    chunks = list(chunked([Section(TEXT)], count, 40, 15))
    shared = [TEXT[b.start : a.end] for a, b in pairwise(chunks)]
    assert all(shared)
    assert {text.split()[0] for text in shared} <= {"The", "After", "Nobody"}


@given(st.lists(st.sampled_from(["", "a b", "c. d", "  e"]), min_size=1, max_size=40))
def test_lines_of_passages_can_be_counted(lines: list[str]) -> None:
    text = "\n".join(lines)
    first = 10
    section = Section(text, numbered("line", first, first + len(lines) - 1))
    for chunk in chunked([section], count, 5, 2):
        numbers = [int(number) for number in re.findall(r"\d+", chunk.location)]
        shown = lines[numbers[0] - first : numbers[-1] - first + 1]
        assert chunk.text.strip() in "\n".join(shown)
        assert shown[0].strip()
        assert shown[-1].strip()


def test_rows_of_passages_can_be_counted() -> None:
    text = "\n".join(f"Name: n{row}; Price: {row}" for row in range(2, 41))
    section = Section(text, "Prices, May, rows 2-40")
    chunks = list(chunked([section], count, 40))
    assert chunks[0].location == "Prices, May, rows 2-6"
    assert chunks[-1].location.endswith("-40")
    for chunk in chunks:
        first = re.search(r"rows (\d+)-", chunk.location)
        assert first is not None
        assert chunk.text.startswith(f"Name: n{first[1]};")
    (whole,) = merged(chunks)
    assert (whole.text, whole.location) == (text, section.location)


def test_a_place_that_only_looks_like_lines_is_left_alone() -> None:
    section = Section("one\ntwo\nthree", "Poems > lines 5-90")
    assert {c.location for c in chunked([section], count, 1)} == {"Poems > lines 5-90"}
    section = Section("one\ntwo\nthree", "Poems, lines 5-90")
    assert {c.location for c in chunked([section], count, 1)} == {"Poems, lines 5-90"}


def test_only_neighbours_are_put_together() -> None:
    one, two, three, *_ = chunked([Section(TEXT)], count, 30)
    (other,) = chunked([Section("x", "page 2")], count, 30)
    assert [c.text for c in merged([three, one])] == [one.text, three.text]
    assert [c.text for c in merged([two, one])] == [one.text + two.text]
    assert merged([one, one]) == [one]
    assert len(merged([one, other])) == 2
    assert merged([]) == []


def test_a_word_longer_than_a_passage_is_cut() -> None:
    chunks = list(chunked([Section("a" * 100_000)], lambda text: len(text) // 3, 100))
    assert "".join(chunk.text for chunk in chunks) == "a" * 100_000


def test_long_texts_are_not_counted_as_a_whole() -> None:
    longest = 0

    def counting(text: str) -> int:
        nonlocal longest
        longest = max(longest, len(text))
        return count(text)

    assert sum(1 for _ in chunked([Section(TEXT * 500)], counting, 50)) > 1000
    assert longest <= 50 * 40


@pytest.mark.parametrize(("size", "overlap"), [(0, 0), (10, 6), (10, -1)])
def test_sizes_that_cannot_be(size: int, overlap: int) -> None:
    with pytest.raises(ValueError, match=f"{size} tokens"):
        list(chunked([Section("x")], count, size, overlap))


@pytest.mark.parametrize(
    ("one", "other", "both"),
    [
        ("page 3", "page 3", "page 3"),
        ("page 3", "page 4", None),
        ("lines 1-4", "lines 3-9", "lines 1-9"),
        ("S, rows 1-4", "S, row 5", "S, rows 1-5"),
        ("S, rows 1-4", "T, rows 5-6", None),
        ("lines 1-4", "rows 5-6", None),
        ("line 4", "line 4", "line 4"),
    ],
)
def test_places_of_two_parts(one: str, other: str, both: str | None) -> None:
    assert joined(one, other) == both
