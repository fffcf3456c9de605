"""How much of a prompt to read at once, by the clock."""

from __future__ import annotations

CHUNK_MIN = 16


class Pace:
    """Learns how fast prompts are read; ``most`` bounds a chunk."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._rate = 0.0

    def took(self, tokens: int, seconds: float) -> None:
        """Tells how long a chunk took; small ones say little about the speed of large ones."""
        if tokens >= CHUNK_MIN and seconds > 0:
            rate = tokens / seconds
            self._rate = rate if not self._rate else 0.7 * self._rate + 0.3 * rate

    def chunk(self, left: int, seconds: float) -> int:
        """Tokens to read of ``left`` in about that time, so that never a single one remains."""
        size = min(left, max(CHUNK_MIN, min(self._most, int(self._rate * seconds))))
        return size - 1 if left - size == 1 else size
