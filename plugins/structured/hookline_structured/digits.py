"""Keeps the numbers of JSON within what a double holds.

The grammar allows ``1e99999``, which is JSON and which every reader turns into infinity, and
digits without end, in which a weak model gets lost. Both are cut here: two digits of exponent,
and `LONGEST` characters. Where the schema itself needs more, the schema wins.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

Mask = npt.NDArray[np.bool_]

LONGEST = 40
"""Characters of a number."""

_CLOSE = LONGEST // 2
"""Characters from which on the next token is looked at."""

_NUMBER = re.compile(rb"[0-9+\-.eE]*")
_START = frozenset(b"-0123456789")
_INSIDE = frozenset(b"0123456789+-.eE")
_OVERFLOW = re.compile(rb"[eE][+-]?[0-9]{3}")
_QUOTE, _ESCAPE = b'"\\'


class Digits:
    """Follows the bytes of one JSON document; ``tokens`` are the bytes of each token."""

    def __init__(self, tokens: Sequence[bytes], overflowing: npt.NDArray[np.int64]) -> None:
        self._tokens = tokens
        self._overflowing = overflowing
        self._number = b""
        self._in_string = False
        self._escaped = False

    def feed(self, raw: bytes) -> None:
        """Takes the bytes of the next token."""
        for byte in raw:
            if self._in_string:
                self._in_string = self._escaped or byte != _QUOTE
                self._escaped = byte == _ESCAPE and not self._escaped
            elif byte in (_INSIDE if self._number else _START):
                self._number += bytes([byte])
            else:
                self._number = b""
                self._in_string = byte == _QUOTE

    def narrow(self, mask: Mask) -> Mask:
        """The mask without the tokens that make a number too long or too large, unless nothing
        would be left."""
        if self._in_string:
            return mask
        unwanted = self._overflowing
        if len(self._number) >= _CLOSE or b"e" in self._number.lower():
            allowed = np.flatnonzero(mask)
            too_much = [self._is_too_much(self._tokens[token]) for token in allowed.tolist()]
            unwanted = allowed[np.array(too_much, np.bool_)]
        if not unwanted.size:
            return mask
        narrowed = mask.copy()
        narrowed[unwanted] = False
        return narrowed if narrowed.any() else mask

    def _is_too_much(self, raw: bytes) -> bool:
        match = _NUMBER.match(raw)
        if match is None or not match[0]:
            return False
        number = self._number + match[0]
        return len(number) > LONGEST or _OVERFLOW.search(number) is not None


def overflowing(tokens: Sequence[bytes]) -> npt.NDArray[np.int64]:
    """The tokens that hold a whole exponent of three digits."""
    return np.array([i for i, raw in enumerate(tokens) if _OVERFLOW.search(raw)], np.int64)
