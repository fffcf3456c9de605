"""Which sequence a prompt goes to, and how much of it is there already.

Every sequence keeps the tokens whose KV it holds after its job has ended. A new prompt is put where
the longest common prefix is, over all sequences: idle ones, running ones, and those that are just
reading a prompt with the same beginning.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from hookline.engines.spans import Ids, Run, Spans, common_length, position, readable_from, run_at

WORTH_COPYING = 16
"""Tokens of prefix from which copying KV from another sequence beats computing it.

Measured on two cores with the default model: a copy costs 2 ms and 13 µs a token, reading a prompt
3.4 ms a token.
"""

_TEMPLATE_END = 8
"""Tokens at the end of a prompt that its continuation may write differently."""


@dataclass(slots=True, eq=False)
class Sequence:
    """One sequence of the KV memory.

    ``tokens[:length]`` are those whose KV it holds, ``tokens[:shared]`` those that others may reuse
    (exactly as reading them as a prompt would give them); ``spans`` are the images among them.
    While a prompt is read, ``tokens`` is all of it. ``asked`` is the length of the last prompt,
    ``used`` counts up with use.
    """

    id: int
    tokens: Ids = field(default_factory=lambda: np.empty(0, np.int32))
    spans: Spans = ()
    length: int = 0
    shared: int = 0
    asked: int = 0
    used: int = 0
    busy: bool = False

    def drop_rest(self) -> None:
        """Gives up what was not read, and what is only half an image."""
        if (run := self.run()).span is not None:
            self.length = run.start
        self.tokens = self.tokens[: self.length]
        self.spans = tuple(span for span in self.spans if span.end <= self.length)
        self.shared = min(self.shared, self.length)

    @property
    def is_reading(self) -> bool:
        """Whether a job's prompt is not all read yet."""
        return self.busy and self.length < self.asked

    def common(self, prompt: Ids, spans: Spans = ()) -> int:
        """Length of the prefix shared with a prompt, computed or still to be read."""
        count = min(len(self.tokens), len(prompt))
        differs = np.flatnonzero(self.tokens[:count] != prompt[:count])
        return common_length(int(differs[0]) if differs.size else count, self.spans, spans)

    def run(self) -> Run:
        """What is read next: the text up to the next image, or the slice of an image."""
        return run_at(self.spans, self.length, len(self.tokens))

    def position(self, place: int) -> int:
        """The position of the token at ``place``, which is in no image or the first of a slice."""
        return position(self.spans, place)


@dataclass(frozen=True, slots=True)
class Placement:
    """Where a prompt goes: into ``target``, whose first ``reused`` tokens are kept or, with a
    ``source``, copied from there."""

    target: Sequence
    reused: int
    source: Sequence | None = None


class PrefixCache:
    """The sequences of one context."""

    def __init__(self, count: int) -> None:
        self.sequences = [Sequence(index) for index in range(count)]
        self._clock = 0

    def place(self, prompt: Ids, spans: Spans = ()) -> Placement | None:
        """The best place for a prompt; None when a sequence is about to read more of it than the
        others have, so that waiting costs nothing and saves work. There must be an idle sequence.

        Something of a prompt is always left to read, since the logits after the last token are
        needed: two tokens at least, where a chunk of one would not be exact.
        """
        total = len(prompt)
        last = run_at(spans, total - 1, total)
        limit = max(last.start, total - 2)
        common = {
            s: readable_from(min(s.common(prompt, spans), limit), spans, total)
            for s in self.sequences
        }
        ready = {s: readable_from(min(n, s.shared), spans, total) for s, n in common.items()}
        ahead = [s for s in self.sequences if s.is_reading and s.shared < common[s]]
        settled = max((ready[s] for s in self.sequences if s not in ahead), default=0)
        if any(common[s] - settled >= WORTH_COPYING for s in ahead):
            return None
        best = max(self.sequences, key=lambda s: (ready[s], not s.busy, s.used))
        idle = [s for s in self.sequences if not s.busy]
        own = max(idle, key=lambda s: (ready[s], s.used))
        oldest = min(idle, key=lambda s: s.used)
        if best.busy or not self._continues(best, ready[best]):
            gain = ready[best] - (ready[oldest] if best is not oldest else 0)
            if best is not oldest and gain >= WORTH_COPYING:
                return Placement(oldest, ready[best], best)
        if ready[own] < WORTH_COPYING and not self._continues(own, ready[own]):
            return Placement(oldest, ready[oldest])
        return Placement(own, ready[own])

    def _continues(self, sequence: Sequence, common: int) -> bool:
        """Whether a prompt goes on with the conversation of a sequence, or asks it again."""
        return common >= sequence.asked - _TEMPLATE_END and common > 0

    def begin(self, placement: Placement, prompt: Ids, spans: Spans = ()) -> Sequence:
        """Marks the target as reading the prompt, from ``reused`` on."""
        sequence = placement.target
        sequence.tokens = prompt
        sequence.spans = spans
        sequence.length = sequence.shared = placement.reused
        sequence.asked = len(prompt)
        sequence.busy = True
        self.touch(sequence)
        return sequence

    def touch(self, sequence: Sequence) -> None:
        """The sequence was used just now."""
        self._clock += 1
        sequence.used = self._clock

    def end(self, sequence: Sequence, said: list[int]) -> None:
        """The job is over; ``said`` are the tokens after its prompt, in KV or not."""
        sequence.busy = False
        read = sequence.tokens[: sequence.asked]
        if sequence.length < sequence.asked:
            sequence.drop_rest()
            read, said = sequence.tokens, []
        sequence.tokens = np.concatenate([read, np.asarray(said, np.int32)])
        self.touch(sequence)

    def stale(self) -> Sequence | None:
        """The idle sequence used last among those whose reply is not reusable yet."""
        late = [s for s in self.sequences if not s.busy and len(s.tokens) - s.shared >= 2]
        return max(late, key=lambda s: s.used, default=None)
