"""A job in the ExLlama engines' generator, and how its next token is chosen."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from hookline.engine import Token
from hookline.engines.answer import Answer
from hookline.engines.run import Run
from hookline.engines.sampler import Floats


@dataclass(slots=True, eq=False)
class Task:
    """A job in the generator. ``said`` are its tokens of this step, ``gone`` whether the library
    has let it go."""

    run: Run
    answer: Answer
    vocabulary: int
    handle: Any = None
    said: list[Token] = field(default_factory=list)
    error: Exception | None = None
    gone: bool = False
    spoke: bool = False

    def choose(self, logits: Callable[[], Floats]) -> int:
        """The next token. After the end any token will do: what was guessed ahead is dropped."""
        if self.answer.finish is not None or self.error is not None:
            return 0
        try:
            row = logits()[: self.vocabulary] if self.answer.needs_logits else None
            token = self.answer.take(row)
        except Exception as error:  # from here it would end every job of the library's generator
            self.error = error
            return 0
        self.said.append(token)
        return token.id
