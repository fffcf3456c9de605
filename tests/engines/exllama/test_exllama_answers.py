"""What the ExLlama engines answer, against the model worked out by hand."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hookline.engine import Decode, Job, Prefill, Sampling
from hookline.engines.sampler import Mask, Sampler, log_softmax

PROMPT = [1, 40, 50, 60, 70]


def expected(
    double: Any, size: int, prompt: list[int], sampling: Sampling, count: int
) -> list[int]:
    """The tokens that the model's logits and Hookline's own sampler give."""
    sampler = Sampler(sampling, prompt, size)
    ids = list(prompt)
    for _ in range(count):
        token = sampler.pick(double.language(tuple(ids), size))
        sampler.accept(token)
        ids.append(token)
    return ids[len(prompt) :]


SAMPLINGS = [
    Sampling(),
    Sampling(temperature=1.0, seed=7),
    Sampling(temperature=0.7, top_k=20, top_p=0.9, min_p=0.02, seed=3),
    Sampling(presence_penalty=1.5, frequency_penalty=0.5, logit_bias={40: 5.0, 41: -100.0}),
    Sampling(temperature=1.2, repetition_penalty=1.3, seed=2**63),
]


@pytest.mark.parametrize("sampling", SAMPLINGS)
async def test_tokens_are_sampled_as_in_every_engine(
    load_engine: Any, answer: Any, double: Any, sampling: Sampling
) -> None:
    async with load_engine() as engine:
        got = await answer(engine, PROMPT, sampling=sampling, max_tokens=12, ignore_end=True)
        size = engine.card.vocabulary
    assert got.ids == expected(double, size, PROMPT, sampling, 12)
    assert got.finish == "length"


@pytest.mark.parametrize("speculation", ["draft", "ngram"])
@pytest.mark.parametrize("sampling", SAMPLINGS)
async def test_guessing_ahead_changes_no_token(
    load_engine: Any, answer: Any, double: Any, make_folder: Any, speculation: str, sampling: Any
) -> None:
    how = {"draft": make_folder("small")} if speculation == "draft" else {"ngram_draft": True}
    async with load_engine(**how) as engine:
        got = await answer(engine, PROMPT, sampling=sampling, max_tokens=11, ignore_end=True)
        size = engine.card.vocabulary
    assert got.ids == expected(double, size, PROMPT, sampling, 11)


async def test_many_at_once_answer_as_each_alone(load_engine: Any, answer: Any) -> None:
    prompts = [[1, 40 + i, 50, 60] for i in range(7)]
    about = {"sampling": Sampling(temperature=0.9, seed=1), "max_tokens": 9, "ignore_end": True}
    async with load_engine(parallel=3) as engine:
        alone = [(await answer(engine, prompt, **about)).ids for prompt in prompts]
        together = await asyncio.gather(*(answer(engine, p, **about) for p in prompts))
    assert [one.ids for one in together] == alone
    assert len({tuple(ids) for ids in alone}) == 7


async def test_logprobs_are_the_models_own(load_engine: Any, answer: Any, double: Any) -> None:
    """Whatever bias, temperature and penalties say."""
    sampling = Sampling(temperature=0.3, seed=5, logit_bias={44: 50.0}, presence_penalty=2)
    async with load_engine() as engine:
        got = await answer(
            engine, PROMPT, sampling=sampling, max_tokens=3, logprobs=4, ignore_end=True
        )
        size = engine.card.vocabulary
    ids = list(PROMPT)
    for token in got.tokens:
        own = log_softmax(double.language(tuple(ids), size))
        assert token.logprob == pytest.approx(float(own[token.id]))
        assert [top.id for top in token.top] == np.argsort(-own)[:4].tolist()
        assert token.top[0].logprob == pytest.approx(float(own.max()))
        ids.append(token.id)


async def test_an_end_token_ends_the_answer_and_is_no_text(load_engine: Any, answer: Any) -> None:
    for end in (0, 2):
        async with load_engine() as engine:
            got = await answer(engine, PROMPT, sampling=Sampling(logit_bias={end: 100.0}))
        assert (got.ids, got.text, got.finish) == ([end], "", "stop")
        assert got.tokens[0].special


async def test_a_jobs_own_stop_token_ends_it(load_engine: Any, answer: Any) -> None:
    async with load_engine() as engine:
        first = await answer(engine, PROMPT, max_tokens=1, ignore_end=True)
        got = await answer(engine, PROMPT, stop_tokens=frozenset(first.ids))
    assert (got.ids, got.text, got.finish) == (first.ids, "", "stop")


class Repeat:
    """A constraint that allows one token of ``size`` so many ``times``."""

    def __init__(self, size: int, token: int, times: int, *, forces: bool = False) -> None:
        self.size, self.token, self.left, self.forces = size, token, times, forces

    def start(self) -> Repeat:
        return type(self)(self.size, self.token, self.left, forces=self.forces)

    @property
    def forced(self) -> int | None:
        return self.token if self.forces else None

    def mask(self) -> Mask:
        mask = np.zeros(self.size, np.bool_)
        mask[self.token] = True
        return mask

    def accept(self, token: int) -> None:
        assert token == self.token
        self.left -= 1

    @property
    def is_done(self) -> bool:
        return self.left == 0


class Broken(Repeat):
    def mask(self) -> Mask:
        raise ValueError("no such state")


@pytest.mark.parametrize("forces", [False, True])
@pytest.mark.parametrize("how", [{}, {"ngram_draft": True}])
async def test_an_opening_and_then_a_grammar_bind_the_answer(
    load_engine: Any, answer: Any, forces: bool, how: dict[str, Any]
) -> None:
    async with load_engine(**how) as engine:
        size = engine.card.vocabulary
        opening = Repeat(size, 77, 3, forces=forces)
        grammars = {"opening": opening, "grammar": Repeat(size, 88, 2)}
        got = await answer(engine, PROMPT, **grammars)
    assert (got.ids, got.finish) == ([77, 77, 77, 88, 88], "stop")


async def test_a_broken_constraint_costs_its_own_job_only(load_engine: Any, answer: Any) -> None:
    async with load_engine() as engine:
        alone = await answer(engine, PROMPT, max_tokens=5, ignore_end=True)
        outcome: Any = await asyncio.gather(
            answer(engine, PROMPT, grammar=Broken(engine.card.vocabulary, 5, 5)),
            answer(engine, PROMPT, max_tokens=5, ignore_end=True),
            return_exceptions=True,
        )
    broken, well = outcome
    assert "no such state" in str(broken)
    assert well.ids == alone.ids


async def test_progress_and_reuse_are_told(load_engine: Any, answer: Any) -> None:
    prompt = [1, *range(40, 140)]
    async with load_engine() as engine:
        first = await answer(engine, prompt, max_tokens=4, ignore_end=True)
        again = await answer(engine, prompt, max_tokens=4, ignore_end=True)
        longer = await answer(engine, [*prompt, 7, 8, 9], max_tokens=1, ignore_end=True)
    done = [p.progress.done for p in first.pieces if isinstance(p.progress, Prefill)]
    assert done == sorted(done)
    assert all(isinstance(p.progress, Decode) for p in first.pieces if p.tokens)
    assert (first.timings.prompt_tokens, first.timings.cached_tokens) == (101, 0)
    assert again.timings.cached_tokens == 100
    assert 100 <= longer.timings.cached_tokens <= 103
    assert again.ids == first.ids


async def test_the_context_bounds_prompt_and_answer(load_engine: Any, answer: Any) -> None:
    async with load_engine() as engine:
        got = await answer(engine, [1] * 250, ignore_end=True)
        assert (len(got.ids), got.finish) == (6, "length")
        with pytest.raises(
            Exception, match="has 256 tokens; with a context of 256 it may have 255"
        ):
            await answer(engine, [1] * 256)


@pytest.mark.parametrize(
    ("job", "message"),
    [
        (Job([]), "The prompt is empty"),
        (Job([1, 9999]), "token 9999, outside the vocabulary"),
        (Job([1, -1]), "image 1 of 0"),
        (Job([1], sampling=Sampling(logit_bias={9999: 1.0})), "logit_bias names token 9999"),
    ],
)
async def test_what_cannot_be_asked_is_refused(load_engine: Any, job: Job, message: str) -> None:
    async with load_engine() as engine:
        with pytest.raises(Exception, match=message):
            async for _ in engine.submit(job):
                pass


async def test_the_tokenizer_is_the_models(load_engine: Any, folder: Path) -> None:
    async with load_engine() as engine:
        text = "<|im_start|>the sea \u00e9\U0001f600<|im_end|>"
        written, quoted = engine.tokenize(text, special=True), engine.tokenize(text)
        assert written[0] == 1 and written[-1] == 2
        assert 1 not in quoted and 2 not in quoted
        assert engine.detokenize(written) == engine.detokenize(quoted) == text
        vocabulary = engine.vocabulary()
        assert b"".join(vocabulary.tokens[i] for i in quoted).decode() == text
        assert vocabulary.end == {0, 2}
        with pytest.raises(ValueError, match="not in the vocabulary"):
            engine.detokenize([5000])
        card = engine.card
        assert card.special_tokens == ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
        assert (card.eos, card.exact_batches, card.context) == ("<|im_end|>", False, 256)
        assert card.chat_template and "im_start" in card.chat_template
