"""The circuit breaker: when it opens, who may try again, when it closes."""

from __future__ import annotations

from hookline.breaker import Breaker


def tripped(limit: int = 3, pause: float = 10) -> Breaker:
    """A breaker that opened at second 0, because of the hook `transform`."""
    breaker = Breaker(limit, pause)
    opened = [breaker.failed("transform", 0) for _ in range(limit)]
    assert opened == [False] * (limit - 1) + [True]
    return breaker


def test_it_opens_after_failures_of_one_hook_in_a_row() -> None:
    breaker = Breaker(limit=3)
    for _ in range(5):
        breaker.failed("transform", 0)
        breaker.failed("transform", 0)
        breaker.failed("stage", 0)
        breaker.succeeded("transform")
        breaker.succeeded("stage")
    assert (breaker.state, breaker.hook) == ("closed", None)
    assert tripped().state == "open"
    assert tripped(limit=1).state == "open"


def test_success_of_another_hook_ends_no_row() -> None:
    breaker = Breaker(limit=2)
    breaker.failed("transform", 0)
    breaker.succeeded("admit")
    assert breaker.failed("transform", 1)


def test_while_open_nobody_is_admitted_until_the_pause_is_over() -> None:
    breaker = tripped(pause=10)
    assert not breaker.admits(9.9)
    assert breaker.remaining(4) == 6
    assert breaker.admits(10)
    assert breaker.state == "half-open"


def test_only_one_tries_at_a_time() -> None:
    breaker = tripped(pause=10)
    assert breaker.admits(10)
    assert not breaker.admits(11)
    assert breaker.admits(20), "the first trial came to nothing: there is another"


def test_a_trial_that_works_closes_it() -> None:
    breaker = tripped()
    breaker.admits(10)
    breaker.succeeded("admit")
    assert breaker.state == "half-open", "that hook never failed"
    breaker.succeeded("transform")
    assert breaker.admits(11)
    assert breaker.remaining(11) == 0
    assert not breaker.failed("transform", 12)


def test_a_trial_that_fails_opens_it_at_once() -> None:
    breaker = tripped(limit=3, pause=10)
    breaker.admits(10)
    assert not breaker.failed("transform", 11), "it was not closed before"
    assert breaker.state == "open"
    assert not breaker.admits(20.9)
    assert breaker.admits(21)
