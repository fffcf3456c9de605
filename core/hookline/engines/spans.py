"""Images inside a prompt: where they are, and where reading may begin.

What is read at once is a run: the text between two images, or one slice of an image. A chunk never
spans two runs, since a pass takes either token ids or vectors.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hookline.images import Image

Ids = npt.NDArray[np.int32]

IMAGE = -1
"""Every token of an image, in the ids that a sequence holds; which image it is, its span says."""


@dataclass(frozen=True, slots=True)
class Slice:
    """A part of an image that is encoded at once: ``tokens`` vectors.

    It moves the text after it by ``positions``: under M-RoPE fewer than its tokens. A vector's
    position is ``offsets + slopes * start``, arrays of the shape ``(tokens,)``, or under M-RoPE
    ``(4, tokens)``. Vectors of a slice that is not ``causal`` look at each other in both
    directions, and must be read in one pass.
    """

    tokens: int
    positions: int
    causal: bool
    offsets: Ids = field(compare=False)
    slopes: Ids = field(compare=False)

    def places(self, start: int) -> Ids:
        """The positions of its vectors where the first one comes at ``start``."""
        return self.offsets + self.slopes * np.int32(start)

    def same_as(self, other: Slice) -> bool:
        """Whether both are read the same way."""
        return self == other and all(
            np.array_equal(self.places(start), other.places(start)) for start in (0, 1)
        )


@dataclass(frozen=True, slots=True)
class Span:
    """Slice ``number`` of an image, at the tokens ``start`` up to ``end`` of a prompt."""

    start: int
    image: Image
    number: int
    slice: Slice

    @property
    def end(self) -> int:
        """The first token after it."""
        return self.start + self.slice.tokens

    @property
    def key(self) -> tuple[str, int]:
        """Names its content, in any prompt."""
        return self.image.digest, self.number


Spans = tuple[Span, ...]


class Run(NamedTuple):
    """Tokens that are read by themselves; ``span`` where they are an image's."""

    start: int
    end: int
    span: Span | None


def run_at(spans: Spans, place: int, total: int) -> Run:
    """The run in which the token at ``place`` is, of a prompt of ``total`` tokens."""
    start = 0
    for span in spans:
        if place < span.start:
            return Run(start, span.start, None)
        if place < span.end:
            return Run(span.start, span.end, span)
        start = span.end
    return Run(start, total, None)


def position(spans: Spans, place: int) -> int:
    """The position of the token at ``place``, which is in no image or the first of a slice."""
    before = (span.slice for span in spans if span.end <= place)
    return place - sum(slice_.tokens - slice_.positions for slice_ in before)


def common_length(length: int, mine: Spans, other: Spans) -> int:
    """How much of a common prefix of ids also holds the same images."""
    for one, two in zip(mine, other, strict=False):
        if one.start >= length:
            break
        if one.key != two.key:
            return min(one.start, two.start)
    return length


def readable_from(length: int, spans: Spans, total: int) -> int:
    """The longest prefix, up to ``length``, after which a prompt can be read on to the bit.

    An image is kept whole or not at all. Of a text, neither the first token alone is kept (it may
    have been the only one of its run, which other kernels read) nor all but the last, which would
    then be read alone.
    """
    run = run_at(spans, length - 1, total) if length else Run(0, 0, None)
    if run.span is not None:
        return length if length == run.end else readable_from(run.start, spans, total)
    if run.end - length == 1:
        length -= 1
    return length if length - run.start > 1 else run.start


def find_spans(
    prompt: npt.NDArray[np.int64], images: Sequence[Image], slices: Sequence[Sequence[Slice]]
) -> Spans:
    """The images of a prompt in which ``-1 - i`` stands for each token of ``images[i]``.

    ``slices`` are those of each image. Raises ValueError where an image is not there as it has to.
    """
    if prompt.min() < -len(images):
        raise ValueError(f"the prompt holds image {-prompt.min()} of {len(images)}")
    spans: list[Span] = []
    for index, image in enumerate(images):
        places = np.flatnonzero(prompt == -1 - index)
        needed = sum(slice_.tokens for slice_ in slices[index])
        if len(places) != needed:
            raise ValueError(f"image {index} takes {needed} tokens, not {len(places)}")
        for number, slice_ in enumerate(slices[index]):
            here, places = places[: slice_.tokens], places[slice_.tokens :]
            if here[-1] - here[0] != slice_.tokens - 1:
                raise ValueError(f"image {index} is torn apart")
            spans.append(Span(int(here[0]), image, number, slice_))
    return tuple(sorted(spans, key=lambda span: span.start))
