"""Bit for bit the same alone and beside others, with and without reuse. Compared on logits."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from hookline.engines.exactness import chunks_are_exact, widths_are_exact
from hookline.engines.llama_context import Place
from hookline.engines.pace import Pace

pytestmark = pytest.mark.model

TEXTS = (
    "Name three colours.",
    "Tell me about the sea, its depth, its colours, and why it is salty. " * 3,
    "Why is the sky blue? Answer in one sentence.",
    "Count from one to twenty, then back again, and say which numbers are prime. " * 6,
    "Hi!",
    "Write a poem about a river that runs uphill. " * 4,
    "Explain how bread is made, step by step, to a child who has never seen an oven. " * 2,
    "What is 2 + 2?",
)


def jobs(player: Any) -> list[Any]:
    """Eight jobs of different lengths, every second one seeded."""
    return [
        player.job(text, tokens=3 + 2 * place, seed=place if place % 2 else None)
        for place, text in enumerate(TEXTS)
    ]


def test_eight_jobs_that_come_and_go_get_the_answers_they_get_alone(player: Any) -> None:
    alone = [player.alone(job) for job in jobs(player)]
    player.forget()
    together = player.play(*jobs(player), arrivals={place: 2 * place for place in range(8)})
    assert all(map(lambda one, other: one.same_as(other), together, alone))


def test_decoding_beside_others_changes_no_bit(player: Any) -> None:
    context = player.generator.context
    rng = np.random.default_rng(8)
    lengths = [255, 3, 31, 64, 7, 120, 40, 90]
    nexts = rng.integers(0, 40000, (8, 3))
    for sequence, length in enumerate(lengths):
        prompt = rng.integers(0, 40000, length, dtype=np.int32)
        context.prefill(sequence, prompt, 0, want_logits=False)

    def decode(sequences: range, step: int) -> Any:
        places = [Place(i, lengths[i] + step, int(nexts[i, step])) for i in sequences]
        return context.decode(places).copy()

    alone = {(i, step): decode(range(i, i + 1), step)[0] for i in range(8) for step in range(3)}
    for width in (2, 3, 4, 5, 8):
        for sequence, length in enumerate(lengths):
            context.cut(sequence, length)
        for step in range(3):
            for sequence, row in enumerate(decode(range(width), step)):
                assert np.array_equal(row, alone[sequence, step])


def read(player: Any, sequence: int, prompt: Any, sizes: Any, start: int = 0) -> Any:
    """Reads a prompt in chunks of these sizes and returns the last logits."""
    context = player.generator.context
    logits: Any = None
    context.cut(sequence, start)
    sizes = itertools.cycle(sizes)
    while start < len(prompt):
        left = len(prompt) - start
        size = min(left, next(sizes))
        size -= left - size == 1
        last = size == left
        logits = context.prefill(sequence, prompt[start : start + size], start, want_logits=last)
        start += size
    return logits.copy()


@pytest.mark.parametrize(
    ("length", "patterns"), [(300, [[200], [77]]), (150, [[3, 2, 8], [16, 61], [64]])]
)
def test_chunks_of_any_size_give_the_same_logits_and_memory(
    player: Any, length: int, patterns: list[list[int]]
) -> None:
    prompt = np.random.default_rng(0).integers(0, 40000, length, dtype=np.int32)
    whole = read(player, 0, prompt, [256])
    state = player.generator.context.state(0)
    for sizes in patterns:
        assert np.array_equal(read(player, 0, prompt, sizes), whole)
        assert player.generator.context.state(0) == state


def test_a_prefix_copied_from_a_running_sequence_is_exact(player: Any) -> None:
    question = player.prompt(TEXTS[3])
    other = player.prompt(TEXTS[3] + "Be brief.")
    alone = player.alone(player.job(other, tokens=8))
    player.forget()
    first = player.start(player.job(question, tokens=12))
    while len(first.tokens) < 5:
        player.step()
    second = player.start(player.job(other, tokens=8))
    while not second.run.ended:
        player.step()
    assert second.cached > 100
    assert second.same_as(alone)


def conversation(player: Any, turns: int, *, rest: bool) -> list[Any]:
    """Every turn's prompt goes on from the reply before."""
    prompt = player.prompt(TEXTS[1])
    played = []
    for turn in range(turns):
        answer = player.play(player.job(prompt, tokens=12, seed=turn))[0]
        played.append(answer)
        if rest:
            player.rest()
        prompt = [*prompt, *answer.ids, *player.prompt(f"Go on, part {turn}.")]
    return played


@pytest.mark.parametrize("rest", [True, False])
def test_a_later_turn_is_exact_and_reuses_the_conversation(player: Any, rest: bool) -> None:
    for turn in conversation(player, 2, rest=rest)[1:]:
        prompt = turn.run.job.prompt
        reused = turn.cached
        assert player.alone(player.job(prompt, tokens=12, seed=turn.run.job.sampling.seed)).same_as(
            turn
        )
        if rest:
            assert reused >= len(prompt) - len(player.prompt("Go on, part 0.")) - 1


@pytest.mark.parametrize("broken_off", [0, 3])
def test_replies_read_again_leave_the_memory_of_a_prompt(
    player: Any, broken_off: int, caplog: pytest.LogCaptureFixture
) -> None:
    answer = player.play(player.job(TEXTS[0], tokens=12))[0]
    for _ in range(broken_off):  # for a job that came; nothing is done, all is left to do
        assert player.generator.idle(lambda: True)
    assert not caplog.records
    player.rest()
    ids = np.array([*answer.run.job.prompt, *answer.ids], np.int32)
    state = player.generator.context.state(0)
    read(player, 0, ids, [256])
    assert player.generator.context.state(0) == state


def test_choices_of_one_prompt_share_its_reading_and_stay_exact(player: Any) -> None:
    prompt = player.prompt(TEXTS[5])
    alone = [player.alone(player.job(prompt, seed=seed)) for seed in range(4)]
    player.forget()
    together = player.play(*[player.job(prompt, seed=seed) for seed in range(4)])
    assert [one.cached for one in together] == [0] + [len(prompt) - 2] * 3
    assert all(map(lambda one, other: one.same_as(other), together, alone))


def test_the_clock_changes_chunks_but_no_bit(player: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    job = player.job(TEXTS[3], tokens=4)
    plain = player.alone(job)
    sizes = itertools.cycle([7, 2, 64, 19])

    def chunk(self: Pace, left: int, seconds: float) -> int:
        size = min(left, next(sizes))
        return size - (left - size == 1) if size > 2 or left != 3 else 3

    monkeypatch.setattr(Pace, "chunk", chunk)
    other = player.alone(player.job(TEXTS[3], tokens=4))
    assert other.chunks != plain.chunks
    assert other.same_as(plain)


def test_a_prompt_of_one_token_is_exact_and_nobody_builds_on_it(player: Any) -> None:
    alone = player.alone(player.job([42], tokens=4))
    together = player.play(player.job([42], tokens=4), player.job([42, 43, 44], tokens=4))
    assert together[0].same_as(alone)
    assert together[1].cached == 0
    assert together[1].same_as(player.alone(player.job([42, 43, 44], tokens=4)))


def test_the_check_at_loading_finds_what_holds(
    player: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    context, size = player.generator.context, player.generator.model.size
    assert chunks_are_exact(context, size)
    assert widths_are_exact(context, 8, size)
    decode, prefill = context.decode, context.prefill
    monkeypatch.setattr(context, "decode", lambda p: decode(p) + np.float32(len(p) == 1))
    assert not widths_are_exact(context, 8, size)
    monkeypatch.setattr(context, "prefill", _off_by_its_start(prefill))
    assert not chunks_are_exact(context, size)


def _off_by_its_start(prefill: Any) -> Any:
    """Another prefill, whose logits depend on where the chunk starts."""

    def changed(sequence: int, tokens: Any, start: int, *, want_logits: bool) -> Any:
        logits = prefill(sequence, tokens, start, want_logits=want_logits)
        return None if logits is None else logits + np.float32(start)

    return changed


def test_where_batches_would_change_bits_decoding_goes_one_by_one(
    player: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    prompts = [player.prompt(text) for text in (TEXTS[0], TEXTS[2])]
    alone = [player.alone(player.job(prompt, tokens=4)) for prompt in prompts]
    player.forget()
    widths: list[int] = []
    decode = player.generator.context.decode

    def watched(places: list[Place]) -> Any:
        widths.append(len(places))
        return decode(places)

    monkeypatch.setattr(player.generator.context, "decode", watched)
    monkeypatch.setattr(player.generator, "_one_by_one", True)
    together = player.play(*[player.job(prompt, tokens=4) for prompt in prompts])
    assert set(widths) == {1}
    assert all(map(lambda one, other: one.same_as(other), together, alone))
