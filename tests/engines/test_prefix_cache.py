"""Where prompts go, without a model."""

from __future__ import annotations

import numpy as np
import pytest

from hookline.engines.prefix_cache import Placement, PrefixCache, Sequence


def ids(*parts: tuple[int, int]) -> np.ndarray[tuple[int], np.dtype[np.int32]]:
    """Token ids: ``(kind, count)`` pairs, each kind with numbers of its own."""
    return np.array([1000 * kind + i for kind, count in parts for i in range(count)], np.int32)


SYSTEM, ANNA, BEN, MORE = (1, 100), (2, 50), (3, 60), (4, 20)


def placed(cache: PrefixCache, prompt: np.ndarray[tuple[int], np.dtype[np.int32]]) -> Placement:
    placement = cache.place(prompt)
    assert placement is not None
    return placement


def read(cache: PrefixCache, prompt: np.ndarray[tuple[int], np.dtype[np.int32]]) -> Sequence:
    """Places a prompt and reads all of it; its job runs on."""
    sequence = cache.begin(placed(cache, prompt), prompt)
    sequence.length = sequence.shared = len(prompt)
    return sequence


def answered(cache: PrefixCache, *parts: tuple[int, int], reply: int = 10) -> Sequence:
    """A whole job, its reply read again."""
    sequence = read(cache, ids(*parts))
    cache.end(sequence, list(range(9000, 9000 + reply)))
    sequence.length = sequence.shared = len(sequence.tokens)
    return sequence


def test_a_first_prompt_goes_anywhere_and_reuses_nothing() -> None:
    placement = placed(PrefixCache(2), ids(ANNA))
    assert (placement.reused, placement.source) == (0, None)


def test_a_conversation_goes_on_where_it_is() -> None:
    cache = PrefixCache(3)
    anna = answered(cache, SYSTEM, ANNA)
    answered(cache, (7, 200))
    prompt = np.concatenate([anna.tokens, ids(MORE)])
    assert placed(cache, prompt) == Placement(anna, 160)


def test_asking_again_stays_and_leaves_two_tokens_to_read() -> None:
    cache = PrefixCache(3)
    anna = answered(cache, SYSTEM, ANNA)
    assert placed(cache, ids(SYSTEM, ANNA)) == Placement(anna, 148)


def test_another_conversation_with_the_same_beginning_copies_it() -> None:
    cache = PrefixCache(2)
    anna = answered(cache, SYSTEM, ANNA)
    ben = cache.sequences[1]
    assert placed(cache, ids(SYSTEM, BEN)) == Placement(ben, 100, source=anna)


def test_alternating_conversations_both_keep_theirs() -> None:
    cache = PrefixCache(2)
    anna, ben = answered(cache, SYSTEM, ANNA), answered(cache, SYSTEM, BEN)
    assert anna is not ben
    for _ in range(3):
        for sequence in (anna, ben):
            prompt = np.concatenate([sequence.tokens, ids(MORE)])
            placement = placed(cache, prompt)
            assert placement == Placement(sequence, len(sequence.tokens))
            cache.begin(placement, prompt)
            sequence.length = sequence.shared = len(prompt)
            cache.end(sequence, [1, 2, 3])
            sequence.length = sequence.shared = len(sequence.tokens)


def test_the_sequence_used_longest_ago_makes_room() -> None:
    cache = PrefixCache(3)
    first, second = answered(cache, ANNA), answered(cache, BEN)
    answered(cache, MORE)
    assert placed(cache, ids((8, 40))).target is first
    cache.touch(first)
    assert placed(cache, ids((8, 40))).target is second


def test_a_running_sequence_is_copied_from_and_never_taken() -> None:
    cache = PrefixCache(2)
    running = read(cache, ids(SYSTEM, ANNA))
    placement = placed(cache, ids(SYSTEM, ANNA))
    assert placement == Placement(cache.sequences[1], 148, source=running)


def test_a_short_prefix_is_not_worth_copying() -> None:
    cache = PrefixCache(2)
    read(cache, ids((5, 10), ANNA))
    assert placed(cache, ids((5, 10), BEN)) == Placement(cache.sequences[1], 0)


def test_a_prompt_waits_for_one_that_is_reading_the_same() -> None:
    cache = PrefixCache(2)
    leader = cache.begin(placed(cache, ids(SYSTEM, ANNA)), ids(SYSTEM, ANNA))
    leader.length = leader.shared = 30
    assert cache.place(ids(SYSTEM, BEN)) is None
    leader.length = leader.shared = 95
    assert cache.place(ids(SYSTEM, BEN)) is None
    leader.length = leader.shared = 110
    assert placed(cache, ids(SYSTEM, BEN)) == Placement(cache.sequences[1], 100, source=leader)


def test_nobody_waits_for_a_leader_that_left() -> None:
    cache = PrefixCache(2)
    leader = cache.begin(placed(cache, ids(SYSTEM, ANNA)), ids(SYSTEM, ANNA))
    leader.length = leader.shared = 30
    cache.end(leader, [])
    assert placed(cache, ids(SYSTEM, BEN)).reused == 30


@pytest.mark.parametrize(("length", "reused"), [(1, 0), (2, 0), (3, 0), (4, 2)])
def test_at_least_two_tokens_are_read_and_none_is_reused_alone(length: int, reused: int) -> None:
    cache = PrefixCache(1)
    answered(cache, (1, length))
    assert placed(cache, ids((1, length))).reused == reused


def test_what_was_not_read_is_not_kept() -> None:
    cache = PrefixCache(1)
    sequence = cache.begin(placed(cache, ids(SYSTEM)), ids(SYSTEM))
    sequence.length = sequence.shared = 40
    cache.end(sequence, [])
    assert len(sequence.tokens) == 40
    assert cache.stale() is None


def test_the_latest_reply_is_read_again_first() -> None:
    cache = PrefixCache(3)
    sequences = [read(cache, ids((kind, 30))) for kind in (1, 2, 3)]
    for sequence, reply in zip(sequences, ([5, 6], [7, 8, 9], [4]), strict=True):
        cache.end(sequence, reply)
    assert cache.stale() is sequences[1]
