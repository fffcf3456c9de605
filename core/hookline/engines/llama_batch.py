"""llama.cpp's batches over numpy arrays, so that filling one costs a few slices."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt


class Place(NamedTuple):
    """Where a decoded token goes: the sequence, and the position in it.

    Without ``wants_logits`` the model only reads the token, which saves its last matrix products;
    what it remembers of it is the same to the bit.
    """

    sequence: int
    position: int
    token: int
    wants_logits: bool = True


class TokenBatch:
    """Token ids, used again for every pass."""

    def __init__(self, api: Any, rows: int) -> None:
        self._tokens = np.zeros(rows, np.int32)
        self._positions = np.zeros(rows, np.int32)
        self._sequences = np.zeros(rows, np.int32)
        self._outputs = np.zeros(rows, np.int8)
        self._steps = np.arange(rows, dtype=np.int32)
        self.struct, self._keep = _struct(api, self._positions, self._sequences, self._outputs)
        _point(api, self.struct, "token", self._tokens)

    def fill_prompt(
        self, sequence: int, tokens: npt.NDArray[np.int32], start: int, *, want_logits: bool
    ) -> None:
        """A chunk of one prompt, its first token at the position ``start``."""
        count = len(tokens)
        self._tokens[:count] = tokens
        self._positions[:count] = self._steps[:count] + start
        self._sequences[:count] = sequence
        self._outputs[:count] = 0
        self._outputs[count - 1] = want_logits
        self.struct.n_tokens = count

    def fill_decode(self, places: Sequence[Place]) -> None:
        """One token for each of several sequences."""
        for row, place in enumerate(places):
            self._tokens[row] = place.token
            self._positions[row] = place.position
            self._sequences[row] = place.sequence
            self._outputs[row] = place.wants_logits
        self.struct.n_tokens = len(places)


class VectorBatch:
    """Vectors of one sequence in place of token ids: ``(tokens, width)`` of them, at positions of
    the shape ``(tokens,)``, or ``(4, tokens)`` under M-RoPE."""

    def __init__(
        self,
        api: Any,
        sequence: int,
        vectors: npt.NDArray[np.float32],
        positions: npt.NDArray[np.int32],
        *,
        want_logits: bool,
    ) -> None:
        count = len(vectors)
        outputs = np.zeros(count, np.int8)
        outputs[-1] = want_logits
        places = np.ascontiguousarray(positions, np.int32)
        self._vectors = np.ascontiguousarray(vectors, np.float32)
        self.struct, self._keep = _struct(api, places, np.full(count, sequence, np.int32), outputs)
        _point(api, self.struct, "embd", self._vectors)
        self.struct.n_tokens = count


def _struct(
    api: Any,
    positions: npt.NDArray[np.int32],
    sequences: npt.NDArray[np.int32],
    outputs: npt.NDArray[np.int8],
) -> tuple[Any, tuple[object, ...]]:
    """A batch whose rows belong to one sequence each, and the arrays that it points into."""
    counts = np.ones(len(sequences), np.int32)
    steps = np.arange(len(sequences), dtype=np.uintp) * sequences.itemsize
    pointers = sequences.ctypes.data + steps
    struct = api.llama_batch()
    arrays: dict[str, npt.NDArray[Any]] = {
        "pos": positions,
        "n_seq_id": counts,
        "seq_id": pointers,
        "logits": outputs,
    }
    for name, array in arrays.items():
        _point(api, struct, name, array)
    return struct, (sequences, *arrays.values())


def _point(api: Any, struct: Any, name: str, array: npt.NDArray[Any]) -> None:
    kind = dict(api.llama_batch._fields_)[name]
    setattr(struct, name, ctypes.cast(array.ctypes.data, kind))
