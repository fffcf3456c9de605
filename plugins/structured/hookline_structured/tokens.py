"""The model's vocabulary as the constraint compiler wants it."""

from __future__ import annotations

from collections.abc import Callable

import llguidance
from llguidance import TokenizerWrapper

from hookline import Engine, Vocabulary
from hookline_structured.digits import overflowing

Encode = Callable[[str], list[int]]


class _Source:
    """What llguidance reads a tokenizer from."""

    def __init__(self, vocabulary: Vocabulary, encode: Encode) -> None:
        self.eos_token_id = min(vocabulary.end)
        self.bos_token_id = None
        self.tokens = list(vocabulary.tokens)
        self.special_token_ids = sorted(vocabulary.special)
        self._encode = encode

    def __call__(self, text: str | bytes) -> list[int]:
        return self._encode(text.decode(errors="replace") if isinstance(text, bytes) else text)


class Tokens:
    """A vocabulary, prepared once for all constraints. Takes a fraction of a second to make."""

    def __init__(self, vocabulary: Vocabulary, encode: Encode) -> None:
        self.size = len(vocabulary.tokens)
        self.raw = vocabulary.tokens
        self.overflowing = overflowing(vocabulary.tokens)
        self.end = vocabulary.end
        self.special = {self.raw[i].decode(errors="replace"): i for i in vocabulary.special}
        self.tokenizer = llguidance.LLTokenizer(
            TokenizerWrapper(_Source(vocabulary, encode)),
            n_vocab=self.size,
            eos_token=sorted(vocabulary.end),
        )

    def texts(self) -> list[bytes]:
        """The bytes of every token, empty for control tokens."""
        special = set(self.special.values())
        return [b"" if i in special else raw for i, raw in enumerate(self.raw)]

    @classmethod
    def of(cls, engine: Engine) -> Tokens:
        """The vocabulary of a loaded engine."""
        return cls(engine.vocabulary(), engine.tokenize)
