"""Where reading may begin in prompts with images, without a model."""

from __future__ import annotations

import numpy as np
import pytest

from hookline.engines.prefix_cache import PrefixCache
from hookline.engines.spans import (
    IMAGE,
    Ids,
    Run,
    Slice,
    Spans,
    find_spans,
    position,
    readable_from,
    run_at,
)
from hookline.images import Image

RED, BLUE = Image(1, 1, b"\xff\0\0"), Image(1, 1, b"\0\0\xff")


def slice_of(tokens: int, positions: int | None = None) -> Slice:
    places = np.arange(tokens, dtype=np.int32)
    return Slice(tokens, positions or tokens, True, places, np.ones(tokens, np.int32))


FOUR, WIDE = slice_of(4), slice_of(6, positions=3)


def prompt(*parts: int | Image, slice_: Slice = FOUR) -> tuple[Ids, Spans]:
    """Numbers are that many tokens of text."""
    ids: list[int] = []
    images: list[Image] = []
    for part in parts:
        if isinstance(part, Image):
            ids += [-1 - len(images)] * slice_.tokens
            images.append(part)
        else:
            ids += range(part)
    found = find_spans(np.array(ids), images, [[slice_]] * len(images))
    return np.maximum(np.array(ids, np.int32), IMAGE), found


def test_spans_are_found_in_the_order_of_the_prompt() -> None:
    ids = np.array([7, -2, -2, -2, -2, -2, -2, 8, -1, -1, -1, -1])
    spans = find_spans(ids, [RED, BLUE], [[FOUR], [slice_of(2), FOUR]])
    assert [(s.start, s.end, s.image, s.number) for s in spans] == [
        (1, 3, BLUE, 0),
        (3, 7, BLUE, 1),
        (8, 12, RED, 0),
    ]


@pytest.mark.parametrize(
    ("ids", "reason"),
    [
        ([1, -1, -1, -1], "image 0 takes 4 tokens, not 3"),
        ([1, 2, 3], "image 0 takes 4 tokens, not 0"),
        ([-1, -1, 5, -1, -1], "image 0 is torn apart"),
        ([-1, -1, -1, -1, -2], "holds image 2 of 1"),
    ],
)
def test_images_that_are_not_there_as_they_have_to_are_refused(ids: list[int], reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        find_spans(np.array(ids), [RED], [[FOUR]])


def test_runs_are_texts_and_slices() -> None:
    ids, spans = prompt(3, RED, BLUE, 2)
    runs = [run_at(spans, place, len(ids)) for place in range(len(ids) + 1)]
    assert runs[0:3] == [Run(0, 3, None)] * 3
    assert runs[3:7] == [Run(3, 7, spans[0])] * 4
    assert runs[7:11] == [Run(7, 11, spans[1])] * 4
    assert runs[11:] == [Run(11, 13, None)] * 3


def test_slices_are_the_same_where_they_are_read_the_same_way() -> None:
    assert FOUR.same_as(slice_of(4))
    assert not FOUR.same_as(WIDE)
    still = Slice(4, 4, True, FOUR.offsets, np.zeros(4, np.int32))
    assert not FOUR.same_as(still)


def test_text_after_an_image_of_few_positions_moves_up() -> None:
    _, spans = prompt(3, RED, 2, BLUE, 2, slice_=WIDE)
    assert [position(spans, place) for place in (0, 3, 9, 11, 17, 18)] == [0, 3, 6, 8, 11, 12]


@pytest.mark.parametrize(
    ("length", "kept"),
    [
        (0, 0),
        (1, 0),  # a first token alone
        (2, 2),
        (4, 4),
        (5, 4),  # all but the last of the text before the image
        (6, 6),
        (7, 6),  # half an image
        (10, 10),
        (11, 10),  # the only token between two images
        (13, 10),  # half an image after it
        (15, 15),
        (16, 15),
        (17, 17),
    ],
)
def test_where_a_prompt_can_be_read_on(length: int, kept: int) -> None:
    ids, spans = prompt(6, RED, 1, BLUE, 4)
    assert readable_from(length, spans, len(ids)) == kept


def answered(cache: PrefixCache, *parts: int | Image) -> None:
    ids, spans = prompt(*parts)
    placement = cache.place(ids, spans)
    assert placement is not None
    sequence = cache.begin(placement, ids, spans)
    sequence.length = sequence.shared = len(ids)
    cache.end(sequence, [])


@pytest.mark.parametrize(
    ("parts", "reused"),
    [
        ((20, RED, 10, BLUE, 5), 20 + 4 + 10 + 4 + 3),
        ((20, RED, 10, RED, 5), 20 + 4 + 10),
        ((20, BLUE, 10, BLUE, 5), 20),
        ((20, RED, 10, 5), 20 + 4 + 10),
        ((20, RED, 10, BLUE, BLUE, 5), 20 + 4 + 10 + 4),
        ((20, RED, 1), 20 + 4),
        ((20, RED), 20),
    ],
)
def test_a_prefix_is_the_same_text_with_the_same_images(
    parts: tuple[int | Image, ...], reused: int
) -> None:
    cache = PrefixCache(1)
    answered(cache, 20, RED, 10, BLUE, 5)
    placement = cache.place(*prompt(*parts))
    assert placement is not None
    assert placement.reused == reused


def test_half_an_image_is_given_up_with_the_job() -> None:
    cache = PrefixCache(1)
    ids, spans = prompt(20, RED, 10)
    placement = cache.place(ids, spans)
    assert placement is not None
    sequence = cache.begin(placement, ids, spans)
    sequence.length = sequence.shared = 22
    cache.end(sequence, [])
    assert (len(sequence.tokens), sequence.length, sequence.shared) == (20, 20, 20)
    assert sequence.spans == ()
    assert cache.stale() is None
