"""Compiled constraints, and how one of them follows one answer."""

from __future__ import annotations

import time
from collections.abc import Sequence
from concurrent.futures import Executor, Future

import llguidance
import numpy as np
import numpy.typing as npt

from hookline import ApiError
from hookline_structured.digits import Digits
from hookline_structured.tokens import Tokens

Mask = npt.NDArray[np.bool_]

SLOW_SECONDS = 0.0003
"""Masks that take longer are worth handing to another thread; most take a tenth of that."""


class TooComplex(ApiError):
    """The grammar met a limit of the compiler while an answer was written."""

    code = "constraint_too_complex"


class CompileError(ValueError):
    """The compiler refuses a grammar."""


class LLGrammar:
    """A grammar over one vocabulary, shared by any number of answers.

    ``is_json``: whether the whole answer is JSON, or JSON in texts that stand fixed. Where masks
    take long, they are computed in ``executor`` while the engine's thread is in the forward pass.
    """

    def __init__(
        self,
        source: str,
        tokens: Tokens,
        executor: Executor | None = None,
        *,
        is_json: bool = False,
    ) -> None:
        self._tokens = tokens
        self._executor = executor
        self._is_json = is_json
        self.end = tokens.end
        self._matcher = llguidance.LLMatcher(tokens.tokenizer, source, log_level=0)
        if self._matcher.is_error():
            raise CompileError(_first_line(self._matcher.get_error()))
        if not self.start().mask().any():
            raise CompileError("no text can match")

    def start(self) -> LLConstraint:
        """A fresh constraint for one answer."""
        digits = Digits(self._tokens.raw, self._tokens.overflowing) if self._is_json else None
        return LLConstraint(self._matcher.deep_copy(), self._tokens, digits, self._executor)

    def completes(self, ids: Sequence[int]) -> bool:
        """Whether these tokens, without an end token, are a whole answer."""
        matcher = self._matcher.deep_copy()
        return matcher.try_consume_tokens(list(ids)) == len(ids) and matcher.is_accepting()

    def may_begin(self, text: str) -> bool:
        """Whether an answer can begin with this text."""
        ids = self._tokens.tokenizer.greedy_tokenize(text)
        return self._matcher.deep_copy().try_consume_tokens(ids) == len(ids)


class LLConstraint:
    """What may come next in one answer."""

    def __init__(
        self,
        matcher: llguidance.LLMatcher,
        tokens: Tokens,
        digits: Digits | None,
        executor: Executor | None,
    ) -> None:
        self._matcher = matcher
        self._tokens = tokens
        self._digits = digits
        self._executor = executor
        self._bits = np.zeros((tokens.size + 31) // 32, np.int32)
        self._next: Future[Mask] | None = None
        self._is_slow = False
        self.is_done = False
        self.forced: int | None = self._compute_forced()

    def mask(self) -> Mask:
        """True for each token that may come next. Raises TooComplex."""
        if self.forced is not None:
            mask = np.zeros(self._tokens.size, np.bool_)
            mask[self.forced] = True
            return mask
        return self._compute() if self._next is None else self._next.result()

    def accept(self, token: int) -> None:
        """Takes the token that was sampled. Raises TooComplex."""
        self._wait()
        self._matcher.consume_token(token)
        self._follow(token)

    def try_accept(self, token: int) -> bool:
        """Takes a token if it can come, also where the model would spell what must come in another
        way; whether it can. Raises TooComplex."""
        self._wait()
        if self.is_done or self._matcher.try_consume_tokens([token]) != 1:
            return False
        self._follow(token)
        return True

    def _wait(self) -> None:
        if self._next is not None:
            self._next.result()  # the matcher belongs to one thread at a time
            self._next = None

    def _follow(self, token: int) -> None:
        self._check()
        if self._digits is not None:
            self._digits.feed(self._tokens.raw[token])
        self.is_done = self._matcher.is_stopped()
        self.forced = None if self.is_done else self._compute_forced()
        if (
            self._executor is not None
            and self._is_slow
            and not self.is_done
            and self.forced is None
        ):
            self._next = self._executor.submit(self._compute)

    def _compute_forced(self) -> int | None:
        """The one token that can come; the compiler also counts those that spell out, in the
        model's own way, bytes that must come."""
        forced = self._matcher.compute_ff_tokens()
        return forced[0] if forced else None

    def _compute(self) -> Mask:
        began = time.perf_counter()
        mask = self._compute_now()
        self._is_slow = time.perf_counter() - began > SLOW_SECONDS
        return mask

    def _compute_now(self) -> Mask:
        self._matcher.unsafe_compute_mask_ptr(self._bits.ctypes.data, self._bits.nbytes)
        self._check()
        bits = np.unpackbits(self._bits.view(np.uint8), count=self._tokens.size, bitorder="little")
        mask: Mask = bits.view(np.bool_)
        return mask if self._digits is None else self._digits.narrow(mask)

    def _check(self) -> None:
        if self._matcher.is_error():
            raise TooComplex(
                "The answer could not be continued under the constraint: "
                f"{_first_line(self._matcher.get_error())}. Simplify it."
            )


def _first_line(message: str) -> str:
    return message.strip().splitlines()[0][:300] if message.strip() else "no reason given"
