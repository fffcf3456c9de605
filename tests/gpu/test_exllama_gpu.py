"""The ExLlama engines on a GPU, with a real model."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from hookline.engine import Job, Piece, Prefill, Sampling
from hookline.engines.exllama import ExLlamaEngine
from hookline.engines.sampler import Mask

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(300)]

FRANCE = "<|im_start|>user\nWhat is the capital of France?<|im_end|>\n<|im_start|>assistant\n"


async def answer(engine: ExLlamaEngine, prompt: list[int], **about: Any) -> list[Piece]:
    return [piece async for piece in engine.submit(Job(prompt, **about))]


def text(pieces: list[Piece]) -> str:
    return "".join(token.text for piece in pieces for token in piece.tokens)


def ids(pieces: list[Piece]) -> list[int]:
    return [token.id for piece in pieces for token in piece.tokens]


def asked(engine: ExLlamaEngine, written: str = FRANCE) -> list[int]:
    return engine.tokenize(written, special=True)


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(30):
        while not condition():
            await asyncio.sleep(0.005)


async def test_it_streams_an_answer_that_makes_sense(load_engine: Any) -> None:
    async with load_engine() as engine:
        pieces = await answer(engine, asked(engine), max_tokens=24)
        again = await answer(engine, asked(engine), max_tokens=24)
    assert "Paris" in text(pieces)
    assert pieces[-1].finish == "stop"
    assert sum(bool(piece.tokens) for piece in pieces) >= 1
    assert again[-1].timings.cached_tokens > 0
    assert "Paris" in text(again)


async def test_a_seed_repeats_and_logprobs_are_the_models(load_engine: Any) -> None:
    about = {"sampling": Sampling(temperature=1.0, seed=3), "max_tokens": 20, "logprobs": 3}
    async with load_engine() as engine:
        first = await answer(engine, asked(engine), **about)
        tokens = [token for piece in first for token in piece.tokens]
        greedy = await answer(engine, asked(engine), max_tokens=1, logprobs=2)
    for token in tokens:
        assert token.logprob is not None and token.logprob <= 0
        assert token.top[0].logprob >= token.logprob
    (one,) = [token for piece in greedy for token in piece.tokens]
    assert one.top[0].id == one.id


async def test_many_at_once_make_sense_and_one_that_leaves_harms_nobody(load_engine: Any) -> None:
    async with load_engine() as engine:
        leaver = engine.submit(Job(asked(engine), ignore_end=True))
        await leaver.__anext__()
        others = asyncio.gather(*(answer(engine, asked(engine), max_tokens=24) for _ in range(12)))
        await leaver.aclose()
        assert all("Paris" in text(pieces) for pieces in await others)
        await until(lambda: engine.stats().running == engine.stats().queued == 0)


class Letters:
    """A constraint: five times one of three letters."""

    def __init__(self, tokens: tuple[bytes, ...], left: int = 5) -> None:
        self.tokens, self.left = tokens, left

    def start(self) -> Letters:
        return Letters(self.tokens)

    def mask(self) -> Mask:
        return np.array([token in (b"x", b"y", b"z") for token in self.tokens])

    def accept(self, token: int) -> None:
        self.left -= 1

    @property
    def is_done(self) -> bool:
        return self.left == 0


@pytest.mark.parametrize("how", [{}, {"ngram_draft": True}, {"draft": True}])
async def test_a_constraint_binds_also_what_is_guessed_ahead(load_engine: Any, how: Any) -> None:
    async with load_engine(**how) as engine:
        grammar = Letters(engine.vocabulary().tokens)
        pieces = await answer(engine, asked(engine), grammar=grammar)
        free = await answer(engine, asked(engine), max_tokens=24)
    assert len(text(pieces)) == 5 and set(text(pieces)) <= set("xyz")
    assert "Paris" in text(free)


@pytest.mark.parametrize("cache", ["q8", "q6", "q4"])
async def test_quantized_kv_memory_still_answers(load_engine: Any, cache: str) -> None:
    async with load_engine(cache=cache) as engine:
        pieces = await answer(engine, asked(engine), max_tokens=24)
        assert engine.stats().kv_bytes > 0
    assert len(ids(pieces)) > 2


async def test_a_long_prompt_tells_its_progress(load_engine: Any) -> None:
    async with load_engine(context=8192, parallel=2) as engine:
        prompt = engine.tokenize("The sea is salty. " * 900)
        pieces = await answer(engine, prompt, max_tokens=2, ignore_end=True)
    done = [piece.progress.done for piece in pieces if isinstance(piece.progress, Prefill)]
    assert done and done == sorted(done) and done[-1] == len(prompt)


async def test_closing_gives_the_memory_back(load_engine: Any) -> None:
    import torch  # type: ignore[import-not-found, unused-ignore]

    async with load_engine() as engine:
        await answer(engine, asked(engine), max_tokens=2)
    first = torch.cuda.memory_allocated()
    async with load_engine() as engine:
        assert torch.cuda.memory_allocated() > first
    assert torch.cuda.memory_allocated() <= first + 2**20


async def test_after_a_fault_it_answers_again(
    load_engine: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with load_engine() as engine:
        await answer(engine, asked(engine), max_tokens=2)

        def fault() -> Any:
            monkeypatch.undo()
            raise RuntimeError("on purpose")

        monkeypatch.setattr(engine.generator.backend, "iterate", fault)
        with pytest.raises(Exception, match="on purpose"):
            await answer(engine, asked(engine))
        assert "Paris" in text(await answer(engine, asked(engine), max_tokens=24))
        assert engine.stats().restarts == 1
