"""Whether batches are exact with this model on this machine, asked of the machine itself.

Which kernel multiplies a matrix depends on the types of the weights, the CPU, and the number and
place of the rows, not on the values. So a few passes over arbitrary tokens tell what holds for all
of them. Most quantized types are exact; F16, BF16 and IQ4_NL are not on CPUs with AVX-512.

Both checks need empty sequences and leave them empty.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from hookline.engines.llama_context import LlamaContext, Logits, Place

_WIDTHS = (1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 24, 32, 48, 64)


def chunks_are_exact(context: LlamaContext, vocabulary: int) -> bool:
    """Whether a prompt gives the same logits in one chunk and in two."""
    tokens = _tokens(vocabulary)
    context.prefill(0, tokens[:2], 0, want_logits=False)
    parts = _copy(context.prefill(0, tokens[2:], 2, want_logits=True))
    context.cut(0, 0)
    whole = _copy(context.prefill(0, tokens, 0, want_logits=True))
    context.cut(0, 0)
    return np.array_equal(whole, parts)


def widths_are_exact(context: LlamaContext, parallel: int, vocabulary: int) -> bool:
    """Whether a decoded token's logits do not depend on how many others are decoded with it, nor
    on its place among them."""
    tokens = _tokens(vocabulary)
    lengths = [2 + sequence % 3 for sequence in range(parallel)]
    for sequence, length in enumerate(lengths):
        context.prefill(sequence, tokens[:length], 0, want_logits=False)
    places = [Place(sequence, length, 1 + sequence) for sequence, length in enumerate(lengths)]
    rows: list[Logits] = []
    for width in sorted({min(width, parallel) for width in _WIDTHS}):
        for order in (places[:width], places[:width][::-1]):
            rows.append(context.decode(order)[order.index(places[0])].copy())
            for place in order:
                context.cut(place.sequence, place.position)
    for sequence in range(parallel):
        context.cut(sequence, 0)
    return all(np.array_equal(row, rows[0]) for row in rows)


def _tokens(vocabulary: int) -> npt.NDArray[np.int32]:
    return np.random.default_rng(0).integers(0, vocabulary, 5, dtype=np.int32)


def _copy(logits: Logits | None) -> Logits:
    assert logits is not None  # noqa: S101 - asked for
    return logits.copy()
