"""Reads prompts into the KV memory, one chunk at a time."""

from __future__ import annotations

import time
from collections.abc import Callable

from hookline.engines.llama_context import Aborted, LlamaContext, Logits
from hookline.engines.llama_projector import Vectors
from hookline.engines.pace import Pace
from hookline.engines.prefix_cache import Sequence
from hookline.engines.spans import Run, Span


class Reader:
    """Reads on in the tokens of a sequence; the size of a chunk follows the clock."""

    def __init__(self, context: LlamaContext, most: int) -> None:
        self._context = context
        self._pace = Pace(most)

    def read(
        self,
        sequence: Sequence,
        seconds: float,
        *,
        vectors: Vectors | None = None,
        aborted: Callable[[], bool] | None = None,
    ) -> Logits | None:
        """Reads a chunk that takes about ``seconds``; the logits when that was all.

        ``vectors`` are those of the slice of an image that comes next, if one does. Raises Aborted
        where it was broken off; of an image, nothing is then read.
        """
        run = sequence.run()
        size = self._size(sequence, run, seconds)
        wants = sequence.length + size == len(sequence.tokens)
        began = time.perf_counter()
        if run.span is None or vectors is None:
            logits = self._text(sequence, size, wants, aborted)
        else:
            logits = self._image(sequence, run.span, vectors, size, wants, aborted)
        self._pace.took(size, time.perf_counter() - began)
        sequence.length += size
        # A single token is read by other kernels than several: nobody may make it the first of
        # several.
        last = run.end == len(sequence.tokens)
        sequence.shared = run.start if last and run.end - run.start == 1 else sequence.length
        return logits

    def _size(self, sequence: Sequence, run: Run, seconds: float) -> int:
        left = run.end - sequence.length
        at_once = run.span is not None and not run.span.slice.causal
        return left if at_once else self._pace.chunk(left, seconds)

    def _text(
        self, sequence: Sequence, size: int, wants: bool, aborted: Callable[[], bool] | None
    ) -> Logits | None:
        return self._context.prefill(
            sequence.id,
            sequence.tokens[sequence.length : sequence.length + size],
            sequence.position(sequence.length),
            want_logits=wants,
            aborted=aborted,
        )

    def _image(
        self,
        sequence: Sequence,
        span: Span,
        vectors: Vectors,
        size: int,
        wants: bool,
        aborted: Callable[[], bool] | None,
    ) -> Logits | None:
        done = sequence.length - span.start
        start = sequence.position(span.start)
        try:
            return self._context.look(
                sequence.id,
                vectors[done : done + size],
                span.slice.places(start)[..., done : done + size],
                start=start,
                causal=span.slice.causal,
                want_logits=wants,
                aborted=aborted,
            )
        except Aborted:
            sequence.length = span.start
            sequence.shared = min(sequence.shared, span.start)
            raise
