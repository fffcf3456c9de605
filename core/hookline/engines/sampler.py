"""From logits to the next token, in numpy, for every engine that hands out logits.

The order of llama.cpp's default chain: logit bias, penalties, (the constraint's mask,) top-k,
top-p, min-p, temperature, draw. So top-p and min-p look at the distribution *before* temperature.
The vocabulary is never sorted: top-k cuts with a partition, and top-p sorts only what is likely
enough to belong to its mass.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from hookline.engine import Sampling

Floats = npt.NDArray[np.float32]
Ids = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


_BLOCK = 256


class Sampler:
    """Chooses one answer's tokens.

    The same logits, sampling and seed give the same tokens: draws come from a Philox generator
    of the job's own, one number a token. Raises ValueError for a ``logit_bias`` outside the
    vocabulary.
    """

    def __init__(self, sampling: Sampling, prompt: Sequence[int], vocabulary: int) -> None:
        self._sampling = sampling
        self._bias_ids = np.fromiter(sampling.logit_bias.keys(), np.int64)
        self._bias = np.fromiter(sampling.logit_bias.values(), np.float32)
        wrong = self._bias_ids[(self._bias_ids < 0) | (self._bias_ids >= vocabulary)]
        if wrong.size:
            raise ValueError(f"logit_bias names token {wrong[0]}, outside the {vocabulary} known")
        seed = sampling.seed
        entropy = None if seed is None else seed % 2**64
        self._random = np.random.Generator(np.random.Philox(entropy))
        self._counts = _Counts(sampling, prompt, vocabulary)
        self._plain = not self._bias.size and not self._counts.active

    def pick(self, logits: Floats, mask: Mask | None = None) -> int:
        """The next token. ``logits`` has the shape ``(vocabulary,)`` and is left as it is; where
        ``mask`` is False the token cannot come. NaN counts as impossible, plus infinity as certain.
        Raises ValueError when no token is possible."""
        if self._sampling.temperature <= 0:
            return self._greedy(logits, mask)
        return self._draw(self._weighed(logits, mask))

    def pass_over(self, token: int) -> int:
        """Takes the only possible token unseen: later draws are as if it had been picked."""
        if self._sampling.temperature > 0:
            self._random.random()
        return token

    def accept(self, token: int) -> None:
        """Counts a token that was generated, for the penalties."""
        self._counts.add(token)

    def _greedy(self, logits: Floats, mask: Mask | None) -> int:
        if self._plain:
            possible = logits if mask is None else np.where(mask, logits, np.float32(-np.inf))
            token = int(possible.argmax())
            if math.isfinite(possible[token]):
                return token
        weighed = self._weighed(logits, mask)
        token = int(weighed.argmax())
        _must_be_possible(weighed[token])
        return token

    def _weighed(self, logits: Floats, mask: Mask | None) -> Floats:
        """A copy with bias, penalties and mask applied, free of NaN."""
        weighed = np.where(np.isnan(logits), np.float32(-np.inf), logits)
        if self._bias.size:
            weighed[self._bias_ids] += self._bias
        self._counts.apply(weighed)
        if mask is not None:
            weighed[~mask] = -np.inf
        return weighed

    def _draw(self, weighed: Floats) -> int:
        ids, logits = self._filtered(weighed)
        top = logits.max()
        _must_be_possible(top)
        if top == np.inf:
            certain = ids[logits == np.inf]
            return int(certain[int(self._random.random() * len(certain))])
        scaled = (logits - top) / np.float32(max(self._sampling.temperature, 1e-6))
        return int(ids[_place(np.exp(scaled), self._random.random())])

    def _filtered(self, weighed: Floats) -> tuple[Ids, Floats]:
        """The ids that top-k, top-p and min-p leave, with their logits."""
        sampling = self._sampling
        ids, logits = np.arange(len(weighed)), weighed
        if 0 < sampling.top_k < len(weighed):
            ids = _head(weighed, sampling.top_k)
            logits = weighed[ids]
        if sampling.top_p < 1:
            places = _nucleus(logits, sampling.top_p)
            ids, logits = ids[places], logits[places]
        if sampling.min_p > 0:
            keep = logits >= logits.max() + math.log(min(sampling.min_p, 1.0))
            ids, logits = ids[keep], logits[keep]
        return ids, logits


class _Counts:
    """How often each token occurred, and what that does to its logit."""

    def __init__(self, sampling: Sampling, prompt: Sequence[int], vocabulary: int) -> None:
        self._presence = sampling.presence_penalty
        self._frequency = sampling.frequency_penalty
        self._repetition = sampling.repetition_penalty
        self.active = bool(self._presence or self._frequency or self._repetition != 1)
        self._generated: dict[int, int] = {}
        self._seen = np.zeros(vocabulary if self._repetition != 1 else 0, np.bool_)
        if self._repetition != 1:
            self._seen[np.asarray(prompt, np.int64)] = True

    def add(self, token: int) -> None:
        if self.active:
            self._generated[token] = self._generated.get(token, 0) + 1
        if self._seen.size:
            self._seen[token] = True

    def apply(self, logits: Floats) -> None:
        """Changes ``logits`` in place; the divisor of CTRL (Keskar et al. 2019), then OpenAI's
        subtractions."""
        if self._seen.size:
            ids = np.flatnonzero(self._seen)
            seen = logits[ids]
            factor = np.float32(self._repetition)
            logits[ids] = np.where(seen > 0, seen / factor, seen * factor)
        if self._generated and (self._presence or self._frequency):
            ids = np.fromiter(self._generated.keys(), np.int64)
            counts = np.fromiter(self._generated.values(), np.float32)
            logits[ids] -= (self._presence + self._frequency * counts).astype(np.float32)


def log_softmax(logits: Floats) -> Floats:
    """Natural logarithms of the probabilities, normalized in double precision."""
    clean = np.where(np.isnan(logits), np.float32(-np.inf), logits)
    top = clean.max()
    _must_be_possible(top)
    if top == np.inf:
        return np.where(clean == top, -np.log(np.float32((clean == top).sum())), -np.inf)
    shifted: Floats = clean - top
    shifted -= np.float32(math.log(np.exp(shifted).sum(dtype=np.float64)))
    return shifted


def top_ids(values: Floats, count: int) -> list[int]:
    """The ids of the ``count`` largest values, largest first, equal ones by id."""
    return [int(i) for i in _head(values, min(count, len(values)))]


def _head(values: Floats, count: int) -> Ids:
    """Like `top_ids`, as an array."""
    ids = np.arange(len(values))
    if count == 0:
        return ids[:0]
    if count < len(values):
        ids = np.sort(np.argpartition(values, len(values) - count)[len(values) - count :])
    return ids[np.argsort(-values[ids], kind="stable")]


def _nucleus(logits: Floats, top_p: float) -> Ids:
    """Places of the fewest likeliest whose probabilities add up to ``top_p``, at least one.

    What is less likely than ``(1 - top_p) / len(logits)`` adds up to less than ``1 - top_p``: it
    cannot belong to them, and is left out before sorting.
    """
    top = logits.max()
    if not math.isfinite(top):
        return np.arange(len(logits))
    mass = np.exp(logits - top)
    total = float(mass.sum(dtype=np.float64))
    rounding = 0.99
    likely = np.flatnonzero(mass >= rounding * (1 - max(top_p, 0.0)) * total / len(mass))
    order = likely[_head(logits[likely], len(likely))]
    reached = mass[order].cumsum(dtype=np.float64)
    return order[: int(reached.searchsorted(top_p * total, side="left")) + 1]


def _place(mass: Floats, share: float) -> int:
    """The place at which ``share``, from 0 to below 1, of the whole mass is passed; never one
    without mass. Sums blocks before it looks into one, which is three times as fast."""
    starts = np.arange(0, len(mass), _BLOCK)
    blocks = np.add.reduceat(mass, starts, dtype=np.float64).cumsum()
    goal = _below(share * blocks[-1], blocks[-1])
    block = int(blocks.searchsorted(goal, side="right"))
    start = block * _BLOCK
    inside = mass[start : start + _BLOCK].cumsum(dtype=np.float64)
    goal = _below(goal - (blocks[block - 1] if block else 0.0), inside[-1])
    return start + int(inside.searchsorted(goal, side="right"))


def _below(value: float, bound: float) -> float:
    return min(value, math.nextafter(bound, 0.0))


def _must_be_possible(best: np.float32) -> None:
    if best == -np.inf:
        raise ValueError("no token is possible here: every logit is minus infinity")
