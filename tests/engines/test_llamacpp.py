"""The llama.cpp generator and engine on the real model."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest
import pytest_asyncio

from hookline.config import ModelSettings
from hookline.engine import Job, Sampling
from hookline.engines.llama_generator import LlamaCppGenerator
from hookline.engines.llamacpp import LlamaCppEngine
from hookline.engines.sampler import Mask
from hookline.errors import (
    ContextLengthExceeded,
    EngineUnavailable,
    InvalidRequest,
    NoModel,
    StartError,
)

pytestmark = pytest.mark.model

END = 2  # <|im_end|>
LONG = "Tell me about the sea, its depth, its colours, and why it is salty. " * 8


class Letters:
    """A constraint that allows the single letters a, b and c, thrice."""

    def __init__(self, generator: LlamaCppGenerator) -> None:
        tokens = generator.model.vocabulary().tokens
        self.allowed: Mask = np.array([token in (b"a", b"b", b"c") for token in tokens])
        self.left = 3

    def start(self) -> Letters:
        self.left = 3
        return self

    def mask(self) -> Mask:
        return self.allowed

    def accept(self, token: int) -> None:
        self.left -= 1

    @property
    def is_done(self) -> bool:
        return self.left == 0


class Broken(Letters):
    def mask(self) -> Mask:
        raise RuntimeError("out of rules")


# The generator


def test_it_answers(player: Any) -> None:
    job = Job(player.prompt("What is the capital of France?"), max_tokens=30)
    answer = player.play(job)[0]
    assert "Paris" in answer.text
    assert answer.finish == "stop"
    assert answer.tokens[-1].special
    assert answer.tokens[-1].text == ""


@pytest.mark.parametrize("wrong", [[], [-1], [49152], [10**12]])
def test_a_prompt_that_is_none_is_refused(player: Any, wrong: list[int]) -> None:
    with pytest.raises(InvalidRequest, match="prompt"):
        player.start(Job(wrong))


def test_a_bias_outside_the_vocabulary_is_refused(player: Any) -> None:
    with pytest.raises(InvalidRequest, match="49152"):
        player.start(Job([5], sampling=Sampling(logit_bias={49152: 1.0})))


def test_a_prompt_that_fills_the_context_is_refused(player: Any) -> None:
    with pytest.raises(ContextLengthExceeded, match=r"576 tokens.*575"):
        player.start(Job([5] * 576))


def test_the_answer_ends_where_the_context_does(player: Any) -> None:
    answer = player.play(Job([5] * 572, ignore_end=True))[0]
    assert (len(answer.tokens), answer.finish) == (4, "length")
    player.rest()


def test_progress_of_a_prompt_reaches_its_end(player: Any) -> None:
    job = player.job(LONG, tokens=1)
    answer = player.play(job)[0]
    assert answer.chunks == sorted(answer.chunks)
    assert answer.chunks[-1] == len(job.prompt)


def test_long_prompts_take_turns_and_do_not_stop_the_others(player: Any) -> None:
    writing = player.start(player.job("Hi!", tokens=60))
    while len(writing.tokens) < 2:
        player.step()
    first = player.start(player.job(LONG, tokens=2))
    second = player.start(player.job("And now? " + LONG, tokens=2))
    while not second.chunks or second.chunks[-1] < len(second.run.job.prompt):
        before = len(writing.tokens)
        player.step()
        assert len(writing.tokens) == before + 1
        assert abs(len(first.chunks) - len(second.chunks)) <= 1 or first.run.ended


def test_alternating_conversations_reuse_their_own_prompts(player: Any) -> None:
    prompts = [player.prompt(LONG), player.prompt("Now something else. " * 20)]
    for turn in range(3):
        for place, prompt in enumerate(prompts):
            answer = player.play(player.job(prompt, tokens=4))[0]
            player.rest()
            if turn:
                assert answer.cached >= len(prompt) - 20
            prompts[place] = [*prompt, *answer.ids, *player.prompt("Go on.")]


def test_logprobs_are_a_log_softmax_of_the_logits(player: Any) -> None:
    job = Job(player.prompt("Hi!"), max_tokens=3, logprobs=3, sampling=Sampling(temperature=2))
    answer = player.play(job)[0]
    for token, logits in zip(answer.tokens, answer.logits, strict=True):
        wide = logits.astype(np.float64)
        expected = wide - wide.max() - np.log(np.exp(wide - wide.max()).sum())
        assert token.logprob == pytest.approx(expected[token.id], abs=1e-4)
        best = np.argsort(-expected)[:3]
        assert [top.id for top in token.top] == best.tolist()
        assert [top.logprob for top in token.top] == pytest.approx(expected[best], abs=1e-4)


def test_emoji_over_several_tokens_arrive_whole(player: Any) -> None:
    ids = player.generator.model.tokenize("🦜 🧿", special=False, bos=False)
    job = Job(player.prompt("Hi!"), max_tokens=len(ids), grammar=Spelled(ids))
    answer = player.play(job)[0]
    assert answer.ids == ids
    assert answer.text == "🦜 🧿"
    assert "" in [token.text for token in answer.tokens]
    assert all("\ufffd" not in token.text for token in answer.tokens)


class Spelled:
    """A constraint that allows one sequence of tokens."""

    def __init__(self, ids: list[int]) -> None:
        self.ids = list(ids)

    def start(self) -> Spelled:
        return Spelled(self.ids)

    def mask(self) -> Mask:
        return np.isin(np.arange(49152), self.ids[:1])

    def accept(self, token: int) -> None:
        self.ids.remove(token)

    @property
    def is_done(self) -> bool:
        return not self.ids


def test_a_constraint_shapes_only_its_job(player: Any) -> None:
    prompt = player.prompt("Hi!")
    alone = player.alone(player.job(prompt))
    player.forget()
    free = player.job(prompt)
    rules = [Letters(player.generator), Broken(player.generator)]
    bound, broken = (Job(prompt, grammar=rule) for rule in rules)
    answers = player.play(free, bound, broken)
    assert answers[0].same_as(alone)
    assert len(answers[1].text) == 3
    assert set(answers[1].text) <= set("abc")
    assert "out of rules" in str(answers[2].error)


def test_cancelling_while_reading_leaves_clean_memory(player: Any) -> None:
    job = player.job(LONG, tokens=4)
    alone = player.alone(job)
    player.forget()
    other = player.start(player.job("Hi!", tokens=30))
    gone = player.start(player.job(LONG, tokens=4))
    while len(gone.chunks) < 2:
        player.step()
    gone.run.cancelled = True
    read = gone.chunks[-1]
    player.step()  # the abort callback breaks this chunk off
    assert gone.chunks[-1] == read
    player.generator.drop(gone.run)
    again = player.play(player.job(LONG, tokens=4))[0]
    assert again.cached == read
    assert again.same_as(alone)
    while not other.run.ended:
        player.step()
    assert other.same_as(player.alone(player.job("Hi!", tokens=30)))


def test_cancelling_while_writing_disturbs_nobody(player: Any) -> None:
    job = player.job("Hi!", tokens=12)
    alone = player.alone(job)
    player.forget()
    stays, goes = player.start(player.job("Hi!", tokens=12)), player.start(player.job(LONG))
    while len(goes.tokens) < 3:
        player.step()
    goes.run.cancelled = True
    player.generator.drop(goes.run)
    while not stays.run.ended:
        player.step()
    assert stays.same_as(alone)
    assert len(goes.tokens) == 3


def test_cancelling_before_a_place_was_found(player: Any) -> None:
    player.start(player.job(LONG))
    player.step()
    follower = player.start(player.job(LONG))
    player.step()
    assert follower.chunks == []
    player.generator.drop(follower.run)
    assert player.generator._arrived == []


# The engine


@pytest_asyncio.fixture
async def engine(model_path: Path) -> AsyncIterator[LlamaCppEngine]:
    settings = ModelSettings(context=512, parallel=2, threads=1)
    engine = LlamaCppEngine(model_path, model_id="smol", settings=settings, max_queue=4)
    await engine.load(lambda _: None)
    yield engine
    await engine.close()


async def ids(engine: LlamaCppEngine, job: Job) -> list[int]:
    return [token.id async for piece in engine.submit(job) for token in piece.tokens]


async def test_the_card_says_what_was_loaded(engine: LlamaCppEngine) -> None:
    card = engine.card
    assert (card.id, card.engine, card.context, card.parallel) == ("smol", "llamacpp", 512, 2)
    assert card.exact_batches
    assert card.vocabulary == 49152
    assert (card.bos, card.eos) == ("<|im_start|>", "<|im_end|>")
    assert {"<|im_start|>", "<|im_end|>", "<|endoftext|>"} <= set(card.special_tokens)
    assert "add_generation_prompt" in (card.chat_template or "")
    assert not card.tools
    assert not card.thinking
    assert card.details["n_ctx_train"] == 8192
    # 30 layers, K and V, 192 halves a token
    assert card.details["kv_bytes"] == 30 * 2 * 192 * 2 * 512 * 2 == engine.stats().kv_bytes


@pytest.mark.parametrize("text", ["", "Hello, world!", "  two spaces", "é🙂日本", "a\0b", "\n\n"])
async def test_text_comes_back_from_its_tokens(engine: LlamaCppEngine, text: str) -> None:
    assert engine.detokenize(engine.tokenize(text)) == text


async def test_control_tokens_are_read_only_where_allowed(engine: LlamaCppEngine) -> None:
    assert engine.tokenize("<|im_end|>", special=True) == [END]
    assert len(engine.tokenize("<|im_end|>")) > 1
    assert engine.detokenize([END]) == "<|im_end|>"
    assert engine.tokenize("Hi", bos=True) == engine.tokenize("Hi")
    assert engine.tokenize("half \ud800") == engine.tokenize("half ?")
    with pytest.raises(ValueError, match="49152"):
        engine.detokenize([49152])


async def test_the_vocabulary_is_whole(engine: LlamaCppEngine) -> None:
    vocabulary = engine.vocabulary()
    assert len(vocabulary.tokens) == 49152
    assert vocabulary.tokens[END] == b"<|im_end|>"
    assert END in vocabulary.end <= vocabulary.special
    assert b" the" in vocabulary.tokens


async def test_a_fault_is_told_and_the_engine_comes_back(
    engine: LlamaCppEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = Job(engine.tokenize("Once upon a time"), max_tokens=4, ignore_end=True)
    before = await ids(engine, job)
    with monkeypatch.context() as patched:
        patched.setattr(LlamaCppGenerator, "step", _break)
        with pytest.raises(EngineUnavailable, match="it broke"):
            await ids(engine, job)
    while engine.state != "ready":
        await asyncio.sleep(0.01)
    assert engine.stats().restarts >= 1
    assert await ids(engine, job) == before


def _break(_: LlamaCppGenerator) -> None:
    raise RuntimeError("it broke")


async def test_a_closed_reader_frees_its_place(engine: LlamaCppEngine) -> None:
    jobs = [Job([5, 6, 7], ignore_end=True) for _ in range(2)]
    generations = [engine.submit(job) for job in jobs]
    for generation in generations:
        await anext(generation)
        await generation.aclose()
    assert len(await ids(engine, Job([8, 9], max_tokens=2, ignore_end=True))) == 2
    assert engine.stats().running == 0


async def test_a_closed_engine_refuses(model_path: Path) -> None:
    engine = LlamaCppEngine(
        model_path, model_id="smol", settings=ModelSettings(context=256, parallel=1), max_queue=4
    )
    with pytest.raises(NoModel):
        engine.tokenize("too early")
    await engine.load(lambda _: None)
    await engine.close()
    with pytest.raises(NoModel):
        engine.tokenize("too late")
    await engine.close()


def test_loading_and_closing_again_and_again_leaks_nothing(model_path: Path) -> None:
    generator = LlamaCppGenerator(
        model_path, model_id="smol", settings=ModelSettings(context=256, parallel=2, threads=1)
    )

    def used_after(rounds: int) -> int:
        for _ in range(rounds):
            generator.load(lambda _: None)
            generator.close()
        return int(psutil.Process().memory_info().rss)

    first = used_after(3)
    assert used_after(5) - first < 20 * 2**20


def test_loading_reports_its_progress(model_path: Path) -> None:
    settings = ModelSettings(context=256, parallel=1, threads=1)
    generator = LlamaCppGenerator(model_path, model_id="smol", settings=settings)
    seen: list[float] = []
    generator.load(seen.append)
    generator.close()
    assert seen == sorted(seen)
    assert seen[-1] == 1.0


@pytest.mark.parametrize(
    ("settings", "exact", "context"),
    [
        ({"exact": False}, False, 256),
        ({"context": 9000}, True, 8192),
        ({"gpu_layers": 1}, False, 256),
    ],
)
def test_promises_follow_the_settings(
    model_path: Path, settings: dict[str, Any], exact: bool, context: int
) -> None:
    chosen = ModelSettings(**{"context": 256, "parallel": 1, "threads": 1} | settings)
    generator = LlamaCppGenerator(model_path, model_id="smol", settings=chosen)
    generator.load(lambda _: None)
    try:
        assert generator.card.exact_batches is exact
        assert generator.card.context == context
    finally:
        generator.close()


def test_files_that_are_no_model_are_refused_in_one_line(model_path: Path, tmp_path: Path) -> None:
    whole = model_path.read_bytes()
    cases = {
        "text.gguf": b"once upon a time",
        "empty.gguf": b"",
        "magic.gguf": b"GGUF",
        "cut.gguf": whole[: len(whole) // 2],
        "header.gguf": whole[:100_000],
        "noise.gguf": whole[:64] + b"\xff" * 4096,
    }
    for name, content in cases.items():
        (tmp_path / name).write_bytes(content)
        message = refusal(tmp_path / name)
        assert name in message
        assert "\n" not in message
    assert "cannot be read" in refusal(tmp_path / "missing.gguf")


def refusal(path: Path) -> str:
    generator = LlamaCppGenerator(path, model_id="bad", settings=ModelSettings())
    with pytest.raises(StartError) as caught:
        generator.load(lambda _: None)
    generator.close()
    return str(caught.value)


def test_without_the_library_the_engine_imports_and_says_what_to_install() -> None:
    code = (
        "import sys; sys.modules['llama_cpp'] = None\n"
        "from hookline.engines.llama_library import library\n"
        "import hookline.engines.llamacpp\n"
        "try: library()\n"
        "except Exception as error: print(type(error).__name__, error)\n"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert said.stdout.startswith("StartError")
    assert "pip install 'hookline[llamacpp]'" in said.stdout
