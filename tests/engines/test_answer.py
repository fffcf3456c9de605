"""One answer on logits made by hand, over a vocabulary of a few words."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from hookline.engine import Job, Sampling
from hookline.engines.answer import Answer
from hookline.engines.sampler import Floats, Mask
from hookline.errors import InvalidRequest, PluginFailed

WORDS = (b"<end>", b"<call>", b"yes", b"no", b"</thi", b"nk>", b"\xc3", b"\xa9")
END, CALL, YES, NO, THI, NK, HALF, REST = range(8)


class Only:
    """A constraint that allows some tokens and is done after a number of them."""

    def __init__(self, allowed: set[int], length: int) -> None:
        self.allowed, self.length = allowed, length
        self.accepted: list[int] = []

    def start(self) -> Only:
        return self

    def mask(self) -> Mask:
        return np.isin(np.arange(len(WORDS)), list(self.allowed))

    def accept(self, token: int) -> None:
        self.accepted.append(token)

    @property
    def is_done(self) -> bool:
        return len(self.accepted) >= self.length


class Broken(Only):
    def mask(self) -> Mask:
        raise RuntimeError("out of rules")


class Refusing(Only):
    def mask(self) -> Mask:
        raise InvalidRequest("not like that")


def answer(room: int = 100, **fields: Any) -> Answer:
    return Answer(
        replace(Job([YES, NO]), **fields),
        raw=WORDS.__getitem__,
        vocabulary=len(WORDS),
        end=frozenset({END}),
        special=frozenset({END, CALL}),
        room=room,
    )


def likes(*tokens: int) -> Floats:
    """Logits that like these tokens, the first most."""
    logits = np.full(len(WORDS), -5, np.float32)
    for place, token in enumerate(tokens):
        logits[token] = 5 - place
    return logits


def test_the_end_token_counts_says_nothing_and_stops() -> None:
    one = answer()
    assert one.take(likes(YES)).text == "yes"
    token = one.take(likes(END))
    assert (token.id, token.text, token.raw, token.special) == (END, "", b"<end>", True)
    assert one.finish == "stop"
    assert one.tokens == [YES, END]


def test_a_stop_token_of_the_job_is_like_an_end() -> None:
    one = answer(stop_tokens=frozenset({NO}))
    token = one.take(likes(NO))
    assert (token.text, token.special, one.finish) == ("", True, "stop")


def test_ignoring_the_end_goes_on() -> None:
    one = answer(ignore_end=True, max_tokens=2)
    token = one.take(likes(END))
    assert (token.text, token.special, one.finish) == ("<end>", True, None)
    one.take(likes(END))
    assert one.finish == "length"


def test_control_tokens_are_written_out_and_marked() -> None:
    token = answer().take(likes(CALL))
    assert (token.text, token.special) == ("<call>", True)


@pytest.mark.parametrize(("room", "limit"), [(2, None), (2, 9), (9, 2)])
def test_the_context_and_the_limit_end_it(room: int, limit: int | None) -> None:
    one = answer(room, max_tokens=limit)
    one.take(likes(YES))
    assert one.finish is None
    one.take(likes(YES))
    assert one.finish == "length"


def test_an_end_at_the_limit_is_a_stop() -> None:
    one = answer(max_tokens=1)
    one.take(likes(END))
    assert one.finish == "stop"


def test_half_a_character_waits() -> None:
    one = answer()
    assert [one.take(likes(HALF)).text, one.take(likes(REST)).text] == ["", "é"]


def test_a_constraint_masks_takes_and_stops() -> None:
    rule = Only({NO, CALL}, 2)
    one = answer(grammar=rule)
    assert one.take(likes(YES, NO)).id == NO
    assert one.finish is None
    assert one.take(likes(YES, CALL)).id == CALL
    assert rule.accepted == [NO, CALL]
    assert one.finish == "stop"


@pytest.mark.parametrize("rule", [Broken({YES}, 1), Only(set(), 1)])
def test_a_constraint_that_cannot_go_on_fails_its_job(rule: Only) -> None:
    with pytest.raises(PluginFailed, match=r"out of rules|no token is possible"):
        answer(grammar=rule).take(likes(YES))


def test_a_refusal_by_a_constraint_stays_what_it_is() -> None:
    with pytest.raises(InvalidRequest, match="not like that"):
        answer(grammar=Refusing({YES}, 1)).take(likes(YES))


def test_a_constraint_begins_after_the_opening() -> None:
    opening, rule = Only({THI, NK}, 2), Only({NO}, 1)
    one = answer(opening=opening, grammar=rule)
    for token in (THI, NK):
        assert one.take(likes(YES, token)).id == token
        assert one.finish is None
    assert one.take(likes(YES, NO)).id == NO
    assert (opening.accepted, rule.accepted) == ([THI, NK], [NO])
    assert one.finish == "stop"


def test_after_an_opening_alone_the_answer_is_free() -> None:
    one = answer(opening=Only({THI}, 1))
    assert [one.take(likes(token, THI)).id for token in (YES, YES, NO)] == [THI, YES, NO]
    assert one.finish is None


def test_logprobs_are_of_the_raw_distribution() -> None:
    logits = likes(YES, NO, CALL)
    rule = Only({NO}, 1)
    sampling = Sampling(temperature=0.5, logit_bias={NO: 3}, presence_penalty=1, top_k=1)
    token = answer(grammar=rule, logprobs=2, sampling=sampling).take(logits)
    expected = logits - np.log(np.exp(logits.astype(np.float64)).sum())
    assert token.id == NO
    assert token.logprob == pytest.approx(expected[NO], abs=1e-5)
    assert [(top.id, top.text, top.raw) for top in token.top] == [
        (YES, "yes", b"yes"),
        (NO, "no", b"no"),
    ]
    assert [top.logprob for top in token.top] == pytest.approx(expected[[YES, NO]], abs=1e-5)


def test_no_logprobs_unless_asked() -> None:
    token = answer().take(likes(YES))
    assert (token.logprob, token.top) == (None, ())
    token = answer(logprobs=0).take(likes(YES))
    assert token.logprob is not None
    assert token.top == ()


def test_penalties_count_what_was_said() -> None:
    one = answer(sampling=Sampling(frequency_penalty=0.6))
    assert [one.take(likes(YES, NO)).id for _ in range(4)] == [YES, YES, NO, YES]
