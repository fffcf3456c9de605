"""Prompts and answers over many pages of KV memory, shared, left and made anew."""

from __future__ import annotations

import asyncio
import sys
from typing import Any

import pytest

from hookline.engine import Job, Sampling
from hookline.engines.sampler import Sampler

PAGE = 256


def greedy(double: Any, size: int, prompt: list[int], count: int) -> list[int]:
    """What the model says when nothing but its logits counts."""
    ids = list(prompt)
    for _ in range(count):
        ids.append(Sampler(Sampling(), prompt, size).pick(double.language(tuple(ids), size)))
    return ids[len(prompt) :]


def counted(length: int, start: int = 0) -> list[int]:
    return [5 + (start + place * 7) % 250 for place in range(length)]


async def test_a_conversation_reads_only_what_is_new(
    load_engine: Any, answer: Any, double: Any
) -> None:
    prompt = counted(2 * PAGE + 40)
    async with load_engine(context=2048) as engine:
        size = engine.card.vocabulary
        first = await answer(engine, prompt, max_tokens=5, ignore_end=True)
        longer = [*prompt, *first.ids, *counted(PAGE, 3)]
        second = await answer(engine, longer, max_tokens=5, ignore_end=True)
    assert first.ids == greedy(double, size, prompt, 5)
    assert second.ids == greedy(double, size, longer, 5)
    assert first.timings.cached_tokens == 0
    assert 2 * PAGE <= second.timings.cached_tokens <= len(longer)


async def test_answers_grow_over_pages_while_others_come_and_leave(
    load_engine: Any, answer: Any, double: Any
) -> None:
    prompts = [counted(PAGE - 4 + number, number) for number in range(6)]
    async with load_engine(context=1024, parallel=4) as engine:
        size = engine.card.vocabulary
        leaver = engine.submit(Job(counted(PAGE - 2), ignore_end=True))
        await leaver.__anext__()
        about = {"max_tokens": 10, "ignore_end": True}
        waiting = asyncio.gather(*(answer(engine, prompt, **about) for prompt in prompts))
        await leaver.aclose()
        got = [one.ids for one in await waiting]
        assert engine.stats().running == 0
    assert got == [greedy(double, size, prompt, 10) for prompt in prompts]


async def test_after_a_fault_the_same_weights_answer_on(
    load_engine: Any, answer: Any, double: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    prompt = counted(PAGE + 9)

    def fault() -> Any:
        raise RuntimeError("on purpose")

    async with load_engine(context=1024) as engine:
        size = engine.card.vocabulary
        await answer(engine, prompt, max_tokens=2)
        with monkeypatch.context() as broken:
            broken.setattr(engine.generator.backend.generator, "iterate", fault)
            with pytest.raises(Exception, match="on purpose"):
                await answer(engine, prompt)
        got = await answer(engine, prompt, max_tokens=6, ignore_end=True)
        assert engine.stats().restarts == 1
    assert got.ids == greedy(double, size, prompt, 6)


@pytest.mark.parametrize("version", ["exllamav2"], indirect=True)
async def test_without_pages_one_after_the_other_is_right_too(
    load_engine: Any, answer: Any, double: Any, monkeypatch: pytest.MonkeyPatch, below: None
) -> None:
    prompts = [counted(PAGE + 30, start) for start in (0, 0, 50)]
    monkeypatch.setattr(sys.modules["exllamav2.attn"], "has_flash_attn_with_paged", False)
    async with load_engine(context=1024, parallel=4) as engine:
        assert engine.card.parallel == 1
        size = engine.card.vocabulary
        about = {"max_tokens": 4, "ignore_end": True}
        got = await asyncio.gather(*(answer(engine, prompt, **about) for prompt in prompts))
    assert [one.ids for one in got] == [greedy(double, size, prompt, 4) for prompt in prompts]
    assert got[1].timings.cached_tokens > PAGE
