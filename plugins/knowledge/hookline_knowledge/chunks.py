"""Documents cut into passages that a model takes, each with its exact place."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from hookline import Section
from hookline_knowledge.locations import Places, joined

Count = Callable[[str], int]
"""How many tokens a text has."""

CHARACTERS_PER_TOKEN = 40
"""A text with more a token is not counted but taken for too long: that is a lot quicker."""

_SENTENCE = re.compile(r"(?<=[.!?…。！？])\s+|\n+")
_WORD = re.compile(r"\s+")
_LONG_WORD = re.compile(r"\S{101,}")


@dataclass(frozen=True, slots=True)
class Chunk:
    """A passage: the characters ``start`` to ``end`` of the section with that index."""

    text: str
    location: str
    section: int
    start: int
    end: int


def chunked(
    sections: Iterable[Section], count: Count, size: int, overlap: int = 0
) -> Iterator[Chunk]:
    """The passages of a document in order, section by section; none is empty.

    ``size`` is the most tokens of a passage (OpenAI's ``max_chunk_size_tokens``), ``overlap`` those
    it may share with the one before (``chunk_overlap_tokens``), at most half of ``size``. Passages
    end at the end of a paragraph, line or sentence where they can (semchunk finds where). White
    space after a passage is part of it, so that neighbours can be put together again. Raises
    ValueError for sizes that cannot be.
    """
    if size < 1 or not 0 <= overlap <= size // 2:
        raise ValueError(f"a size of {size} tokens does not go with an overlap of {overlap}")
    count = _by_length(count)
    for index, section in enumerate(sections):
        places = Places(section)
        for start, end in _spans(section.text, count, size, overlap):
            yield Chunk(section.text[start:end], places.of(start, end), index, start, end)


def _by_length(count: Count) -> Count:
    """The count, with words over all length by their length: a tokenizer that has one token for
    each word it does not know would let a passage grow without end."""

    def counted(text: str) -> int:
        return count(text) + sum(len(word) // 4 for word in _LONG_WORD.findall(text))

    return counted


def merged(chunks: Sequence[Chunk]) -> list[Chunk]:
    """Passages in order of their place, neighbours as one and what they share only once."""
    result: list[Chunk] = []
    for chunk in sorted(chunks, key=lambda c: (c.section, c.start)):
        together = _together(result[-1], chunk) if result else None
        if together is None:
            result.append(chunk)
        else:
            result[-1] = together
    return result


def _together(one: Chunk, other: Chunk) -> Chunk | None:
    location = joined(one.location, other.location)
    if one.section != other.section or other.start > one.end or location is None:
        return None
    text = one.text + other.text[one.end - other.start :]
    return Chunk(text, location, one.section, one.start, max(one.end, other.end))


def _spans(text: str, count: Count, size: int, overlap: int) -> Iterator[tuple[int, int]]:
    """Where passages start and end."""
    if not text.strip():
        return
    starts = _starts(text, _bounded(count, size), size - overlap)
    ends = [*starts[1:], len(text)]
    previous = 0
    for start, end in zip(starts, ends, strict=True):
        yield _reaching_back(text, previous, start, end, count, size, overlap), end
        previous = start


def _starts(text: str, count: Count, size: int) -> list[int]:
    from semchunk.semchunk import chunk

    # Its own memory of counts would keep every text that was ever seen.
    found: Any = chunk(text, size, count, memoize=False, offsets=True)
    return [start for start, _ in found[1]]


def _bounded(count: Count, size: int) -> Count:
    return lambda text: size + 1 if len(text) > size * CHARACTERS_PER_TOKEN else count(text)


def _reaching_back(
    text: str, previous: int, start: int, end: int, count: Count, size: int, overlap: int
) -> int:
    """Where a passage begins that shares up to ``overlap`` tokens with the one before it: at a
    sentence, or else at a word."""
    if not overlap or previous >= start:
        return start
    for border in (_SENTENCE, _WORD):
        begins = [
            b for found in border.finditer(text, previous, start) if (b := found.end()) < start
        ]
        near = bisect_left(begins, True, key=lambda begin: count(text[begin:start]) <= overlap)
        for begin in begins[near:]:
            if count(text[begin:end].rstrip()) <= size:
                return begin
    return start
