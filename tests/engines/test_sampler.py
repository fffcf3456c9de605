"""The sampler alone, against exact cases and a plain reference."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hookline.engine import Sampling
from hookline.engines.sampler import Floats, Sampler, _place, log_softmax, top_ids

INF = float("inf")


def floats(*values: float) -> Floats:
    return np.array(values, np.float32)


def probabilities(*values: float) -> Floats:
    """Logits of a distribution."""
    return np.log(np.array(values, np.float32))


def sampler(vocabulary: int = 5, prompt: tuple[int, ...] = (), **fields: Any) -> Sampler:
    return Sampler(Sampling(**fields), prompt, vocabulary)


def drawn(logits: Floats, count: int = 300, **fields: Any) -> set[int]:
    """Which tokens come in many draws."""
    one = sampler(len(logits), **{"temperature": 1.0, "seed": 1} | fields)
    return {one.pick(logits) for _ in range(count)}


def test_greedy_takes_the_first_of_the_likeliest() -> None:
    assert sampler().pick(floats(0, 3, 1, 3, -INF)) == 1


def test_greedy_leaves_the_logits_alone() -> None:
    logits = floats(0, 3, 1, 3, 2)
    before = logits.copy()
    one = sampler(logit_bias={1: -100}, presence_penalty=1, repetition_penalty=2, prompt=(3,))
    assert one.pick(logits, np.array([True, True, True, True, False])) == 3
    assert np.array_equal(logits, before)


def test_what_is_not_a_number_cannot_come() -> None:
    assert sampler(3).pick(floats(float("nan"), -1, -2)) == 1
    assert drawn(floats(float("nan"), -1, -INF, -2)) == {1, 3}


def test_plus_infinity_is_certain() -> None:
    assert drawn(floats(1, INF, 2, INF)) == {1, 3}
    assert drawn(floats(1, INF, 2, INF), top_p=0.5) == {1, 3}
    assert sampler(3).pick(floats(1, 2, INF)) == 2


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_no_possible_token_is_an_error(temperature: float) -> None:
    with pytest.raises(ValueError, match="no token is possible"):
        sampler(2, temperature=temperature).pick(floats(1, 2), np.zeros(2, np.bool_))
    with pytest.raises(ValueError, match="no token is possible"):
        sampler(2, temperature=temperature).pick(floats(float("nan"), -INF))


def test_a_mask_forbids() -> None:
    mask = np.array([False, True, False, True, False])
    assert sampler().pick(floats(9, 1, 8, 2, 7), mask) == 3


def test_bias_is_added() -> None:
    assert sampler(logit_bias={0: 2.5}).pick(floats(1, 3, 0, 0, 0)) == 0
    assert sampler(logit_bias={1: -100}).pick(floats(1, 3, 0, 0, 0)) == 0


@pytest.mark.parametrize("token", [-1, 5])
def test_bias_outside_the_vocabulary_is_refused(token: int) -> None:
    with pytest.raises(ValueError, match=f"token {token}"):
        sampler(logit_bias={token: 1.0})


def test_presence_counts_once_and_frequency_every_time() -> None:
    logits = floats(2, 1.5, 0, 0, 0)
    presence, frequency = sampler(presence_penalty=0.4), sampler(frequency_penalty=0.2)
    for one, repeats in ((presence, 5), (frequency, 2)):
        for _ in range(repeats):
            one.accept(0)
        assert one.pick(logits) == 0
    frequency.accept(0)
    assert frequency.pick(logits) == 1
    presence = sampler(presence_penalty=0.6)
    presence.accept(0)
    assert presence.pick(logits) == 1


def test_presence_and_frequency_ignore_the_prompt() -> None:
    one = sampler(prompt=(0, 0, 0), presence_penalty=2, frequency_penalty=2)
    assert one.pick(floats(2, 1.5, 0, 0, 0)) == 0


def test_repetition_divides_what_is_positive_and_multiplies_what_is_not() -> None:
    assert sampler(prompt=(0,), repetition_penalty=2).pick(floats(3, 1.6, 0, 0, 0)) == 1
    assert sampler(prompt=(0,), repetition_penalty=2).pick(floats(3, 1.4, 0, 0, 0)) == 0
    assert sampler(2, prompt=(0,), repetition_penalty=2).pick(floats(-1, -1.9)) == 1
    later = sampler(2, repetition_penalty=2)
    later.accept(0)
    assert later.pick(floats(3, 1.6)) == 1


def test_top_k_keeps_the_likeliest() -> None:
    assert drawn(floats(1, 5, 4.9, 4.8, 0), top_k=2) == {1, 2}
    assert drawn(floats(1, 1, 1), top_k=9) == {0, 1, 2}


def test_top_p_keeps_the_fewest_that_reach_the_mass() -> None:
    logits = probabilities(0.05, 0.5, 0.3, 0.15)
    assert drawn(logits, top_p=0.45) == {1}
    assert drawn(logits, top_p=0.79) == {1, 2}
    assert drawn(logits, top_p=0.81) == {1, 2, 3}
    assert drawn(logits, top_p=0.0) == {1}


def test_top_p_looks_at_the_mass_that_top_k_left() -> None:
    assert drawn(probabilities(0.4, 0.3, 0.3), top_k=2, top_p=0.55) == {0}


def test_top_p_looks_beyond_its_first_candidates() -> None:
    assert drawn(np.zeros(3000, np.float32), count=4000, top_p=0.5) <= set(range(3000))
    assert len(drawn(np.zeros(3000, np.float32), count=9000, top_p=0.5)) > 1400


def test_min_p_is_relative_to_the_likeliest() -> None:
    logits = probabilities(0.5, 0.3, 0.15, 0.05)
    assert drawn(logits, min_p=0.5) == {0, 1}
    assert drawn(logits, min_p=0.25) == {0, 1, 2}
    assert drawn(logits, min_p=1.0) == {0}


def test_temperature_comes_after_the_filters() -> None:
    assert drawn(probabilities(0.5, 0.3, 0.15, 0.05), temperature=5.0, min_p=0.5) == {0, 1}


def test_draws_follow_the_distribution() -> None:
    one = sampler(3, temperature=1.0, seed=3)
    counts = Counter(one.pick(probabilities(0.5, 0.3, 0.2)) for _ in range(20_000))
    assert [counts[i] / 20_000 for i in range(3)] == pytest.approx([0.5, 0.3, 0.2], abs=0.015)


def test_temperature_flattens() -> None:
    one = sampler(2, temperature=2.0, seed=3)
    counts = Counter(one.pick(floats(2, 0)) for _ in range(20_000))
    assert counts[0] / 20_000 == pytest.approx(np.exp(1) / (1 + np.exp(1)), abs=0.015)


def test_a_seed_repeats_and_another_differs() -> None:
    logits = np.zeros(1000, np.float32)
    first, again, other = (
        [one.pick(logits) for _ in range(20)]
        for one in (sampler(1000, temperature=1.0, seed=seed) for seed in (7, 7, 8))
    )
    assert first == again != other


@pytest.mark.parametrize("seed", [-1, 2**63, 2**70])
def test_any_integer_is_a_seed(seed: int) -> None:
    assert sampler(5, temperature=1.0, seed=seed).pick(floats(0, 0, 0, 0, 0)) in range(5)


def test_without_a_seed_answers_differ() -> None:
    logits = np.zeros(100_000, np.float32)
    assert len({sampler(100_000, temperature=1.0).pick(logits) for _ in range(8)}) > 1


def reference(logits: Floats, k: int, p: float, m: float) -> set[int]:
    """The tokens that top-k, top-p and min-p leave, the slow way."""
    order = sorted(range(len(logits)), key=lambda i: (-float(logits[i]), i))
    order = order[:k] if k else order
    mass = np.exp(logits[order] - logits[order[0]], dtype=np.float64)
    wanted, kept = p * mass.sum(), []
    for place, token in enumerate(order):
        kept.append(token)
        if p >= 1 or mass[: place + 1].sum() < wanted:
            continue
        break
    return {token for token in kept if logits[token] >= logits[order[0]] + np.log(m or 1e-300)}


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.integers(-20, 20), min_size=1, max_size=40, unique=True),
    st.integers(0, 12),
    st.sampled_from([0.05, 0.3, 0.5, 0.9, 0.999, 1.0]),
    st.sampled_from([0.0, 0.01, 0.1, 0.7]),
)
def test_filters_leave_what_the_slow_way_leaves(
    values: list[int], k: int, p: float, m: float
) -> None:
    logits = np.array(values, np.float32) / np.float32(4)
    one = sampler(len(values), temperature=1.0, top_k=k, top_p=p, min_p=m)
    ids, kept = one._filtered(logits)
    assert set(ids.tolist()) == reference(logits, k, p, m)
    assert np.array_equal(kept, logits[ids])


@settings(max_examples=100, deadline=None)
@given(st.lists(st.floats(-50, 50, width=32), min_size=1, max_size=50))
def test_log_softmax_is_one(values: list[float]) -> None:
    logits = np.array(values, np.float32)
    wide = logits.astype(np.float64)
    expected = wide - wide.max() - np.log(np.exp(wide - wide.max()).sum())
    assert log_softmax(logits) == pytest.approx(expected, abs=1e-5)


def test_log_softmax_of_extremes() -> None:
    assert log_softmax(floats(float("nan"), 0, -INF, 0)) == pytest.approx(
        [-INF, np.log(0.5), -INF, np.log(0.5)]
    )
    assert log_softmax(floats(INF, 0, INF)) == pytest.approx([np.log(0.5), -INF, np.log(0.5)])


@given(
    st.lists(st.sampled_from([0.0, 1.0, 0.25]), min_size=1, max_size=900).filter(any),
    st.floats(0, 1, exclude_max=True),
)
def test_a_draw_passes_its_share_and_never_meets_what_has_no_mass(
    masses: list[float], share: float
) -> None:
    mass = np.array(masses, np.float32)
    place = _place(mass, share)
    sums = mass.cumsum(dtype=np.float64)
    assert mass[place] > 0
    assert sums[place] > share * sums[-1] or share > 1 - 1e-12
    assert sums[place] - mass[place] <= share * sums[-1]


def test_top_ids_come_sorted_with_ties_by_id() -> None:
    assert top_ids(floats(1, 3, 2, 3), 3) == [1, 3, 2]
    assert top_ids(floats(1, 3), 9) == [1, 0]
    assert top_ids(floats(1, 3), 0) == []
