"""Bytes of tokens to text, never half a character."""

from __future__ import annotations

import codecs


class Detokenizer:
    """Decodes one answer, token by token.

    A character comes with the token that completes it; bytes that are no UTF-8 become U+FFFD. What
    is incomplete at the end of the answer is never said.
    """

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")

    def feed(self, raw: bytes) -> str:
        """What one more token adds to the text."""
        return self._decoder.decode(raw)

    def control(self, raw: bytes) -> str:
        """The text of a control token. A character that was incomplete before it stays unsaid."""
        self._decoder.reset()
        return raw.decode(errors="replace")
