"""What is read at once, and from where others may go on, without a model."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from hookline.engines.llama_reader import Reader
from hookline.engines.prefix_cache import Sequence
from hookline.engines.spans import IMAGE, Slice, Span
from hookline.images import Image

RED = Image(1, 1, b"\xff\0\0")


class Context:
    """Notes what it is given to read."""

    def __init__(self) -> None:
        self.read: list[tuple[str, int, int, bool]] = []

    def prefill(self, _: int, tokens: Any, start: int, *, want_logits: bool, aborted: Any) -> Any:
        self.read.append(("text", start, len(tokens), want_logits))
        return "logits" if want_logits else None

    def look(self, _: int, vectors: Any, positions: Any, *, start: int, **about: Any) -> Any:
        assert len(vectors) == positions.shape[-1]
        self.read.append(("image", int(positions[0]), len(vectors), about["want_logits"]))
        return "logits" if about["want_logits"] else None


def sequence(before: int, after: int, *, causal: bool = True) -> Sequence:
    """Some text, an image of 40 tokens, some text."""
    steps = np.arange(40, dtype=np.int32)
    slice_ = Slice(40, 40, causal, steps, np.ones_like(steps))
    made = Sequence(0, spans=(Span(before, RED, 0, slice_),))
    made.tokens = np.array([5] * before + [IMAGE] * 40 + [6] * after, np.int32)
    made.asked = len(made.tokens)
    return made


def read_all(made: Sequence) -> tuple[Context, list[int]]:
    """Reads everything in the smallest chunks; what others may reuse after each."""
    context, shared = Context(), []
    reader = Reader(context, 16)  # type: ignore[arg-type]
    while made.length < len(made.tokens):
        vectors = None if made.run().span is None else np.zeros((40, 2), np.float32)
        reader.read(made, 0.0, vectors=vectors)
        shared.append(made.shared)
    return context, shared


def test_texts_and_slices_are_read_one_after_the_other() -> None:
    context, _ = read_all(sequence(20, 3))
    assert context.read == [
        ("text", 0, 16, False),
        ("text", 16, 4, False),
        ("image", 20, 16, False),
        ("image", 36, 16, False),
        ("image", 52, 8, False),
        ("text", 60, 3, True),
    ]


def test_a_slice_that_is_not_causal_is_read_at_once() -> None:
    context, _ = read_all(sequence(2, 0, causal=False))
    assert context.read == [("text", 0, 2, False), ("image", 2, 40, True)]


@pytest.mark.parametrize(("after", "shared"), [(1, 50), (2, 52)])
def test_nobody_builds_on_a_single_last_token(after: int, shared: int) -> None:
    made = sequence(10, after)
    assert read_all(made)[1][-1] == shared
    assert made.length == 50 + after
