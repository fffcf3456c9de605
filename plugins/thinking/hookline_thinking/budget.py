"""The constraint of a thought: it ends with its tag, after no more tokens than it may have."""

from __future__ import annotations

import codecs
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from hookline import Engine

Mask = npt.NDArray[np.bool_]


class EndTag:
    """What the text of an end tag means for the tokens of a model; made once, which takes a while.

    ``within`` allows every token but those that end an answer: a thought must be closed first.
    """

    def __init__(self, text: str, engine: Engine) -> None:
        vocabulary = engine.vocabulary()
        self.text = text.encode()
        self.within = np.ones(len(vocabulary.tokens), np.bool_)
        self.within[list(vocabulary.end)] = False
        self._engine = engine
        self._tokens = vocabulary.tokens
        self._overshooting = self._find_overshooting(vocabulary.tokens)

    def raw(self, token: int) -> bytes:
        """The bytes of a token, also of one that the vocabulary did not have at first."""
        return self._tokens[token] or self._engine.detokenize([token]).encode()

    def _find_overshooting(self, tokens: Sequence[bytes]) -> dict[bytes, list[int]]:
        """Tokens that complete the tag and go on, by the part of the tag that must come before.

        What they go on with belongs to the answer, whose constraint has not begun yet; so the tag
        is completed by a token that says nothing more than white space.
        """
        found: dict[bytes, list[int]] = {}
        candidates = [(i, raw) for i, raw in enumerate(tokens) if self.text[-1] in raw]
        for token, raw in candidates:
            for length in range(1, len(self.text) + 1):
                head, tail = self.text[:-length], self.text[-length:]
                if (not head and tail in raw and raw.partition(tail)[2].strip()) or (
                    head and raw.startswith(tail) and raw[length:].strip()
                ):
                    found.setdefault(head, []).append(token)
        return found

    def mask(self, before: bytes) -> Mask:
        """What may come inside a thought whose last bytes are ``before``."""
        forbidden = [ids for head, ids in self._overshooting.items() if before.endswith(head)]
        if not forbidden:
            return self.within
        mask = self.within.copy()
        for ids in forbidden:
            mask[ids] = False
        return mask


class Thought:
    """A thought of at most ``budget`` tokens as a grammar; ``closing`` are the ids that end it."""

    def __init__(self, end: EndTag, budget: int, closing: Sequence[int]) -> None:
        self.end = end
        self.budget = budget
        self.closing = closing

    def start(self) -> _Thinking:
        """The thought of one answer."""
        return _Thinking(self)


class _Thinking:
    """Counts the tokens of one thought; once they are spent, allows just those that close it."""

    def __init__(self, thought: Thought) -> None:
        self._thought = thought
        self._left = thought.budget
        self._before = b""
        self._characters = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._closing: list[int] = []
        self.is_done = False

    @property
    def forced(self) -> int | None:
        return self._closing[0] if self._closing else None

    def mask(self) -> Mask:
        if self.forced is None:
            return self._thought.end.mask(self._before)
        mask = np.zeros_like(self._thought.end.within)
        mask[self.forced] = True
        return mask

    def accept(self, token: int) -> None:
        if self._closing:
            del self._closing[0]
            self.is_done = not self._closing
        else:
            self._think(self._thought.end.raw(token))

    def _think(self, raw: bytes) -> None:
        end = self._thought.end.text
        seen = self._before + raw
        self._before = seen[max(0, len(seen) - len(end) + 1) :]
        self._left -= 1
        self._characters.decode(raw)
        if end in seen:
            self.is_done = True
        elif self._left <= 0 and not self._characters.getstate()[0]:  # no character is cut in half
            self._closing = list(self._thought.closing)
