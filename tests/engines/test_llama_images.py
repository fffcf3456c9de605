"""The way from images to vectors, with an encoder that only counts."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

from hookline.engines.llama_images import EncodedImages, Look, Looks
from hookline.engines.spans import Slice, Span, Spans
from hookline.images import Image

PART = Slice(4, 4, True, np.arange(4, dtype=np.int32), np.ones(4, np.int32))


class Counting:
    """An encoder whose images are ready when the test says so."""

    def __init__(self) -> None:
        self.ready = threading.Event()
        self.ready.set()
        self.scaled: list[int] = []
        self.encoded: list[tuple[int, int]] = []
        self.closed = False

    def tokenize(self, image: Image) -> Image:
        self.ready.wait(10)
        if image.width == 9:
            raise ValueError("too wide")
        self.scaled.append(image.width)
        return image

    def encode(self, bitmap: Image, number: int) -> Any:
        self.encoded.append((bitmap.width, number))
        return np.full((4, 2), bitmap.width, np.float32)

    def close(self) -> None:
        self.closed = True


def image(width: int) -> Image:
    return Image(width, 1, bytes(3 * width))


def spans(*widths: int, slices: int = 1) -> Spans:
    places = [(width, number) for width in widths for number in range(slices)]
    return tuple(Span(i * 10, image(w), number, PART) for i, (w, number) in enumerate(places))


@pytest.fixture
def encoder() -> Counting:
    return Counting()


@pytest.fixture
def looks(encoder: Counting) -> Any:
    made = Looks(encoder)  # type: ignore[arg-type]
    yield made
    encoder.ready.set()
    made.close()
    assert encoder.closed


def see(look: Look, span: Span) -> float:
    """The vectors of a slice, encoded where they are not there."""
    if look.vectors(span) is None:
        look.encode(span, 10)
    found = look.vectors(span)
    assert found is not None
    return float(found[0, 0])


def test_the_vectors_used_last_are_remembered_up_to_a_size() -> None:
    memory = EncodedImages(most=100)
    one, two, three = spans(1, 2, 3)
    vectors = np.zeros((4, 2), np.float32)  # 32 bytes
    for span in (one, two, three):
        memory.put(span, vectors)
    assert memory.get(one) is not None
    memory.put(spans(4)[0], vectors)
    assert memory.get(two) is None
    assert memory.get(one) is not None
    memory.put(spans(5)[0], np.zeros((40, 2), np.float32))
    assert [memory.get(span) for span in (one, three, *spans(4, 5))] == [None] * 4


def test_every_slice_is_encoded_once_and_every_image_scaled_once(
    looks: Looks, encoder: Counting
) -> None:
    prompt = spans(1, 2, 1, slices=2)
    look = looks.look(prompt)
    assert [see(look, span) for span in prompt] == [1, 1, 2, 2, 1, 1]
    assert encoder.encoded == [(1, 0), (1, 1), (2, 0), (2, 1)]
    assert encoder.scaled == [1, 2]
    again = looks.look(prompt)
    assert [see(again, span) for span in prompt] == [1, 1, 2, 2, 1, 1]
    assert encoder.scaled == [1, 2]


def test_an_image_that_is_not_scaled_yet_costs_no_time(looks: Looks, encoder: Counting) -> None:
    encoder.ready.clear()
    (span,) = spans(1)
    look = looks.look((span,))
    assert look.encode(span, 0.001) == 0.0
    assert look.vectors(span) is None
    encoder.ready.set()
    assert look.encode(span, 10) > 0
    assert look.vectors(span) is not None


def test_what_is_being_read_stays_when_others_push_it_out(looks: Looks) -> None:
    looks.encoded = EncodedImages(most=40)
    first, second = spans(1, 2)
    look = looks.look((first,))
    see(look, first)
    see(looks.look((second,)), second)
    assert looks.encoded.get(first) is None
    assert look.vectors(first) is not None


def test_an_image_that_cannot_be_scaled_says_why(looks: Looks) -> None:
    (span,) = spans(9)
    with pytest.raises(ValueError, match="too wide"):
        looks.look((span,)).encode(span, 10)
