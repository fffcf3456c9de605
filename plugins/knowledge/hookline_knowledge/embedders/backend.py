"""What differs between models that run here: one text at a time, in a thread."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt

Vector = npt.NDArray[np.float32]


class Backend(Protocol):
    """A loaded model. Its tokenizer may be used from any thread."""

    dimensions: int
    max_tokens: int
    parallel: int
    """How many threads may embed at once."""

    def tokenize(self, text: str) -> list[int]:
        """The tokens of a text, without those the model adds of its own."""
        ...

    def detokenize(self, ids: Sequence[int]) -> str:
        """The text of tokens. Raises ValueError for an id outside the vocabulary."""
        ...

    def embed(self, text: str) -> tuple[Vector, int]:
        """The text's vector, of length 1, and how many tokens were read; in a worker's thread."""
        ...

    def close(self) -> None:
        """Frees the model, once no thread uses it."""
        ...


def of_length_one(vector: Vector) -> Vector:
    """The vector's direction; zeros stay zeros."""
    length = float(np.linalg.norm(vector))
    return vector / length if length else vector
