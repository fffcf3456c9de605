"""Stand-ins for ``exllamav2``, ``exllamav3`` and ``torch``, which need a GPU to be imported.

They keep to the documented interface of the dynamic generators: what a job takes, what
``iterate()`` gives, when ``cancel`` may be called, how a fault shows. `test_exllama_interface`
compares their signatures with those of the real packages. The "model" is a function of the tokens
so far, so that a test can work out what any answer must be.
"""

from __future__ import annotations

import json
import zlib
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np

FIRST_IMAGE_ID = 1_000_000_000
CHUNK = 16


def language(ids: tuple[int, ...], vocabulary: int) -> np.ndarray[Any, np.dtype[np.float32]]:
    """The model: pseudo-random logits of the tokens so far, the same for the same tokens."""
    seed = zlib.crc32(np.asarray([i % 2**31 for i in ids], np.int64).tobytes())
    logits: np.ndarray[Any, np.dtype[np.float32]] = (
        np.random.default_rng(seed).normal(0, 3, vocabulary).astype(np.float32)
    )
    return logits


@dataclass
class Machine:
    """What a test sees and sets of the machine: ``events`` in order, ``faults`` that the next
    ``iterate()`` raises (None: goes well), ``broken`` markers of prompts that fail alone."""

    events: list[str] = field(default_factory=list)
    faults: deque[Exception | None] = field(default_factory=deque)
    load_faults: deque[Exception | None] = field(default_factory=deque)
    broken: int | None = None
    cuda: bool = True
    paged: bool = True
    no_flash_attn: bool = False
    generators: list[Any] = field(default_factory=list)
    made: dict[str, dict[str, Any]] = field(default_factory=dict)
    embedded: int = 0

    def load(self, what: str, callback: Callable[[int, int], None] | None) -> None:
        fault = self.load_faults.popleft() if self.load_faults else None
        if fault is not None:
            raise fault
        self.events.append(f"load {what}")
        for done in range(1, 5):
            if callback:
                callback(done, 4)


class Tensor:
    """As much of ``torch.Tensor`` as adapters touch."""

    is_cuda = False

    def __init__(self, array: Any) -> None:
        self.array = np.asarray(array)
        self.device = SimpleNamespace(type="cpu")

    @property
    def shape(self) -> tuple[int, ...]:
        return self.array.shape

    def __getitem__(self, key: Any) -> Tensor:
        return Tensor(self.array[key])

    def __setitem__(self, key: Any, value: Any) -> None:
        self.array[key] = value

    def float(self) -> Tensor:
        return Tensor(self.array.astype(np.float32))

    def cpu(self) -> Tensor:
        return self

    def numpy(self) -> Any:
        return self.array

    def fill_(self, value: Any) -> Tensor:
        self.array.fill(value)
        return self

    def item(self) -> Any:
        return self.array.item()


class Cache:
    """KV memory, of either version."""

    def __init__(self, model: Any, tokens: int) -> None:
        assert tokens % 256 == 0, "must be a multiple of the page size"
        self.model, self.tokens = model, tokens


class Job:
    """What both versions' jobs have in common."""

    def __init__(self, ids: Tensor, most: int, embeddings: list[Any] | None) -> None:
        assert ids.device.type == "cpu", "input_ids must reside in system memory"
        assert ids.shape[0] == 1 and ids.shape[1] > 0, "input_ids must be [1, seq_len]"
        self.prompt = [int(i) for i in ids.array[0]]
        self.ids = list(self.prompt)
        self.most, self.embeddings = most, embeddings or []
        known = {i for one in self.embeddings for i in one.own}
        assert known >= {i for i in self.prompt if i >= FIRST_IMAGE_ID}, "unknown image"
        self.read = self.new = self.serial = 0
        self.cached_pages = self.cached_tokens = 0

    def sample(self, logits: Tensor) -> int:
        raise NotImplementedError

    def result(self, stage: str, *, eos: bool = False, **more: Any) -> dict[str, Any]:
        return {"job": self, "stage": stage, "eos": eos, "serial": self.serial, **more}


class DynamicGenerator:
    """Continuous batching, reuse of what was read, and speculation, as both versions do it."""

    page_size = 256

    def __init__(self, machine: Machine, vocabulary: int, cache: Cache, batch: int, drafts: int):
        self.machine, self.vocabulary, self.cache = machine, vocabulary, cache
        self.batch, self.drafts = batch, drafts
        self.pending_jobs: list[Job] = []
        self.active_jobs: list[Job] = []
        self.history: list[list[int]] = []
        self.serial = 0
        machine.generators.append(self)
        machine.events.append("generator")

    def enqueue(self, job: Job) -> int:
        needed = -(-(len(job.prompt) + job.most) // 256)
        assert needed * 256 <= self.cache.tokens, f"Job requires {needed} pages"
        self.serial += 1
        job.serial = self.serial
        self.pending_jobs.append(job)
        return job.serial

    def cancel(self, job: Job) -> None:
        """The real ones ignore a job that has ended; here that is a mistake of the adapter's."""
        assert job in self.pending_jobs or job in self.active_jobs, "the job has ended"
        (self.pending_jobs if job in self.pending_jobs else self.active_jobs).remove(job)
        self.history.append(job.ids)

    def iterate(self) -> list[dict[str, Any]]:
        fault = self.machine.faults.popleft() if self.machine.faults else None
        if fault is not None:
            raise fault
        results: list[dict[str, Any]] = []
        while self.pending_jobs and len(self.active_jobs) < self.batch:
            job = self.pending_jobs.pop(0)
            self.active_jobs.append(job)
            self._reuse(job)
            results.append(job.result("started"))
        for job in list(self.active_jobs):
            self._advance(job, results)
        return results

    def _reuse(self, job: Job) -> None:
        best = max((_common(job.prompt, old) for old in self.history), default=0)
        job.read = min(best, len(job.prompt) - 1)
        job.cached_pages, job.cached_tokens = divmod(job.read, self.page_size)

    def _advance(self, job: Job, results: list[dict[str, Any]]) -> None:
        if self.machine.broken is not None and job.prompt[0] == self.machine.broken:
            self.active_jobs.remove(job)
            results.append(job.result("error", eos=True, error=RuntimeError("no room for it")))
            return
        last = len(job.prompt) - 1
        if job.new == 0 and job.read < last:
            job.read = min(job.read + CHUNK, last)
            results.append(job.result("prefill", curr_progress=job.read, max_progress=last))
        if job.read == last:
            self._write(job, results)

    def _logits(self, ids: list[int]) -> Tensor:
        """Rows are padded, and what stands in the padding must never be looked at."""
        padded = np.full(-(-self.vocabulary // 32) * 32, 1000.0, np.float32)
        padded[: self.vocabulary] = language(tuple(ids), self.vocabulary)
        return Tensor(padded)

    def _write(self, job: Job, results: list[dict[str, Any]]) -> None:
        guesses = [int(language(tuple(job.ids), self.vocabulary).argmax())]
        for _ in range(self.drafts):
            row = language(tuple(job.ids + guesses), self.vocabulary)
            guesses.append(int(row.argmax()))
        rows = [self._logits(job.ids + guesses[:place]) for place in range(self.drafts + 1)]
        for token, guess in zip(self._samples(job, rows), guesses, strict=False):
            job.ids.append(token)
            job.new += 1
            eos = job.new >= self._limit(job)
            results.append(job.result("streaming", eos=eos, token_ids=Tensor([[token]])))
            if eos:
                self.active_jobs.remove(job)
                self.history.append(job.ids)
            if eos or token != guess:
                break

    def _samples(self, job: Job, rows: list[Tensor]) -> Iterator[int]:
        """One after another, each when the one before was accepted."""
        yield from map(job.sample, rows)

    def _limit(self, job: Job) -> int:
        return job.most


def _common(one: list[int], other: list[int]) -> int:
    pairs = zip(one, other, strict=False)
    return next((i for i, (a, b) in enumerate(pairs) if a != b), min(len(one), len(other)))


class Embedding:
    """An image as vectors."""

    align = 0

    def __init__(self, first: int, width: int, height: int) -> None:
        self.own = list(range(first, first + width * height))
        self.token_list = [5, *self.own, 6]

    def get_ids(self) -> list[int]:
        return self.own


def embed(machine: Machine, image: Any) -> Embedding:
    """One vector for each eight by eight pixels."""
    machine.embedded += 1
    first = FIRST_IMAGE_ID + 10_000 * machine.embedded
    return Embedding(first, -(-image.width // 8), -(-image.height // 8))


def read_config(directory: str) -> dict[str, Any]:
    config: dict[str, Any] = json.loads((Path(directory) / "config.json").read_text())
    return config


def module(name: str, **content: Any) -> ModuleType:
    """A module as the import system has it."""
    made = ModuleType(name)
    made.__spec__ = ModuleSpec(name, None)
    for key, value in content.items():
        setattr(made, key, value)
    return made


def torch(machine: Machine) -> ModuleType:
    """PyTorch, as far as adapters use it."""

    @contextmanager
    def inference_mode() -> Iterator[None]:
        yield

    cuda = module(
        "torch.cuda",
        is_available=lambda: machine.cuda,
        empty_cache=lambda: machine.events.append("freed"),
    )
    return module(
        "torch",
        tensor=Tensor,
        cuda=cuda,
        inference_mode=inference_mode,
        version=module("torch.version", cuda="13.0"),
        __version__="2.11.0",
    )
