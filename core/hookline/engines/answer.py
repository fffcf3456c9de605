"""One job's answer as it grows: sampling, constraint, text and the end. Shared by engines that
hand out logits."""

from __future__ import annotations

import logging
from collections.abc import Callable

from hookline.constraints import constraint_of, forced_token
from hookline.engine import FinishReason, Job, Token, TopLogprob
from hookline.engines.detokenizer import Detokenizer
from hookline.engines.sampler import Floats, Sampler, log_softmax, top_ids
from hookline.errors import ApiError, PluginFailed

log = logging.getLogger(__name__)


class Answer:
    """Turns one job's logits into tokens.

    ``raw`` gives the bytes of a token; ``end`` are the model's end tokens, ``special`` those whose
    text no client should see. ``room`` is how many tokens the context has left. Raises ValueError
    where the job's ``logit_bias`` cannot be used.
    """

    def __init__(
        self,
        job: Job,
        *,
        raw: Callable[[int], bytes],
        vocabulary: int,
        end: frozenset[int],
        special: frozenset[int],
        room: int,
    ) -> None:
        self._job = job
        self._raw = raw
        self._special = special
        self._stops = job.stop_tokens if job.ignore_end else job.stop_tokens | end
        self._room = room if job.max_tokens is None else min(room, job.max_tokens)
        text = [token for token in job.prompt if token >= 0] if job.images else job.prompt
        self._sampler = Sampler(job.sampling, text, vocabulary)
        self._detokenizer = Detokenizer()
        self._constraint = constraint_of(job)
        self.tokens: list[int] = []
        self.finish: FinishReason | None = None

    @property
    def needs_logits(self) -> bool:
        """Whether the model must be asked for the next token: not where it is forced, unless its
        probability is wanted."""
        return self._job.logprobs is not None or forced_token(self._constraint) is None

    def take(self, logits: Floats | None) -> Token:
        """Chooses the next token and settles whether the answer ends with it. Raises ApiError when
        this job cannot go on. ``logits`` may be None where they are not needed; the token is the
        same."""
        try:
            token = self._choose(logits)
        except ApiError:
            raise
        except Exception as error:
            log.exception("choosing a token failed")
            raise PluginFailed(f"The answer could not be continued: {error}") from error
        self.tokens.append(token)
        ends = token in self._stops
        said = self._say(token, logits, hidden=ends)
        self._settle(ends)
        return said

    def _choose(self, logits: Floats | None) -> int:
        forced = forced_token(self._constraint)
        if forced is not None:
            token = self._sampler.pass_over(forced)
        elif logits is not None:
            mask = None if self._constraint is None else self._constraint.mask()
            token = self._sampler.pick(logits, mask)
        else:
            raise RuntimeError("no logits, and no token is forced")
        self._sampler.accept(token)
        if self._constraint is not None:
            self._constraint.accept(token)
        return token

    def _settle(self, ends: bool) -> None:
        if ends or (self._constraint is not None and self._constraint.is_done):
            self.finish = "stop"
        elif len(self.tokens) >= self._room:
            self.finish = "length"

    def _say(self, token: int, logits: Floats | None, *, hidden: bool) -> Token:
        raw = self._raw(token)
        special = hidden or token in self._special
        text = ""
        if not hidden:
            text = self._detokenizer.control(raw) if special else self._detokenizer.feed(raw)
        if self._job.logprobs is None or logits is None:
            return Token(token, text, raw, special)
        logprobs = log_softmax(logits)
        top = tuple(
            TopLogprob(i, self._raw(i).decode(errors="replace"), self._raw(i), float(logprobs[i]))
            for i in top_ids(logprobs, self._job.logprobs)
        )
        return Token(token, text, raw, special, float(logprobs[token]), top)
