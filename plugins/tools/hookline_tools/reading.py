"""Reading text that comes in pieces, with generators that wait for more."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import TypeVar

from hookline import overlap

Result = TypeVar("Result")
Reading = Generator[None, None, Result]
"""Yields where it needs more text, and returns what it read."""


class Misspelled(Exception):
    """The model wrote something that its constraint does not allow."""


class Text:
    """Text of which the next part may not be there yet; what is read is taken away."""

    def __init__(self, begin: str = "") -> None:
        self.ahead = begin

    def peek(self, *choices: str) -> Reading[str]:
        """Which of the choices comes next; it is not taken."""
        while True:
            for choice in choices:
                if self.ahead.startswith(choice):
                    return choice
            if not any(choice.startswith(self.ahead) for choice in choices):
                raise Misspelled(f"{self.ahead[:40]!r} is none of {choices}")
            yield

    def literal(self, text: str) -> Reading[None]:
        """Takes a text that must come."""
        yield from self.peek(text)
        self.ahead = self.ahead[len(text) :]

    def until(self, mark: str, say: Callable[[str], None]) -> Reading[None]:
        """Takes everything up to and with a mark; says what is before the mark as it comes."""
        while mark not in self.ahead:
            length = len(self.ahead) - overlap(self.ahead, mark)
            said, self.ahead = self.ahead[:length], self.ahead[length:]
            say(said)
            yield
        said, _, self.ahead = self.ahead.partition(mark)
        say(said)
