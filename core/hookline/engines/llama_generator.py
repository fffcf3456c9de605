"""The llama.cpp generator: continuous batching over the sequences of one context."""

from __future__ import annotations

import contextlib
import logging
import os
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from hookline.config import ModelSettings
from hookline.engine import Card, EngineStats
from hookline.engines.answer import Answer
from hookline.engines.exactness import chunks_are_exact, widths_are_exact
from hookline.engines.llama_context import Aborted, LlamaContext, Logits, Place
from hookline.engines.llama_library import library
from hookline.engines.llama_model import LlamaModel
from hookline.engines.pace import Pace
from hookline.engines.prefix_cache import Ids, PrefixCache
from hookline.engines.prefix_cache import Sequence as Slot
from hookline.engines.run import Run
from hookline.errors import ApiError, ContextLengthExceeded, InvalidRequest, NoModel

log = logging.getLogger(__name__)

CPU_CHUNK, GPU_CHUNK = 256, 512
"""Most tokens of a prompt to read at once. On a CPU, 64 are as fast as 512 (294 tokens/s)."""

BESIDE_SECONDS = 0.06
"""How long a prompt chunk may hold up the tokens of others."""

ALONE_SECONDS = 0.25
"""How long a prompt chunk takes when only other prompts wait for their turn."""

IDLE_SECONDS = 0.05
"""How long work that can wait may hold up a job that arrives."""


@dataclass(slots=True, eq=False)
class _Task:
    """A job in the generator; without a slot until its prompt was placed."""

    run: Run
    prompt: Ids
    answer: Answer
    slot: Slot | None = None
    cached: int = 0


class LlamaCppGenerator:
    """Reads prompts in chunks and writes one token a step for every sequence that answers.

    A step reads at most one chunk, of the prompt whose turn it is, and then decodes all answers in
    one pass. Chunk sizes follow the clock; they do not change a bit of what is computed. While
    nobody asks, replies are read again as prompt, so that the next turn of their conversation
    finds KV that is exactly what reading the whole conversation would give.
    """

    def __init__(self, path: Path, *, model_id: str, settings: ModelSettings) -> None:
        self.parallel = settings.parallel
        self._path = path
        self._model_id = model_id
        self._settings = settings
        self._exact = settings.exact and settings.gpu_layers == 0
        self._chunk = GPU_CHUNK if settings.gpu_layers else CPU_CHUNK
        self._model: LlamaModel | None = None
        self._context: LlamaContext | None = None
        self._card: Card | None = None
        self._one_by_one = False
        self._forget_everything()

    def _forget_everything(self) -> None:
        self._cache = PrefixCache(self.parallel)
        self._arrived: list[_Task] = []
        self._reading: deque[_Task] = deque()
        self._writing: list[_Task] = []
        self._pace = Pace(self._chunk)

    @property
    def model(self) -> LlamaModel:
        """The loaded model. Raises NoModel while there is none."""
        if self._model is None:
            raise NoModel("The model is not loaded. Try again in a moment.", retry_after=2)
        return self._model

    @property
    def context(self) -> LlamaContext:
        """The KV memory of the loaded model."""
        if self._context is None:
            raise NoModel("The model is not loaded. Try again in a moment.", retry_after=2)
        return self._context

    @property
    def card(self) -> Card:
        """What was loaded; stays while the model is loaded again after a fault."""
        if self._card is None:
            raise NoModel("The model is not loaded. Try again in a moment.", retry_after=2)
        return self._card

    def load(self, progress: Callable[[float], None]) -> None:
        """Loads the weights and allocates the KV memory. Raises StartError."""
        settings = self._settings
        model = self._model = LlamaModel(
            self._path,
            gpu_layers=settings.gpu_layers,
            repack=not self._exact and _repacking_is_safe(),
            progress=progress,
        )
        context = _usable_context(settings.context, model.context)
        threads = settings.threads or _cores()
        self._context = LlamaContext(
            model,
            context=context,
            parallel=self.parallel,
            chunk=self._chunk,
            threads=threads,
            exact=self._exact,
        )
        promised = self._check_exactness(model)
        self._card = self._describe(model, context, threads, exact=promised)
        log.info(
            "%s: %d sequences of %d tokens, %.0f MiB of KV memory, %d threads",
            *(self._path.name, self.parallel, context, self._context.kv_bytes / 2**20, threads),
        )

    def _check_exactness(self, model: LlamaModel) -> bool:
        """Whether answers are bit for bit the same alone and beside others, which then is promised.

        Where a pass over several sequences would change them, they are decoded one by one. The
        passes it takes to find out warm the model up, too.
        """
        chunks = chunks_are_exact(self.context, model.size)
        widths = widths_are_exact(self.context, self.parallel, model.size)
        if not self._settings.exact:
            return False
        if not (self._exact and model.rewinds and chunks):
            log.warning(
                "Answers are not promised to be bit for bit the same alone and beside others: "
                "that needs the CPU (gpu_layers = 0) and a model with attention only."
            )
            return False
        self._one_by_one = not widths
        if self._one_by_one:
            log.warning(
                "This model's weights (%s) are decoded one request at a time, since batches would "
                "change answers. exact = false in [model] makes it faster.",
                model.details()["description"],
            )
        return True

    def _describe(self, model: LlamaModel, context: int, threads: int, *, exact: bool) -> Card:
        template = model.chat_template or ""
        return Card(
            id=self._model_id,
            engine="llamacpp",
            context=context,
            parallel=self.parallel,
            exact_batches=exact,
            vocabulary=model.size,
            chat_template=model.chat_template,
            bos=model.bos,
            eos=model.eos,
            special_tokens=model.special_texts,
            longest_token=model.longest,
            tools="tools" in template,
            thinking="enable_thinking" in template or "<think>" in template,
            details=model.details() | {"kv_bytes": self.context.kv_bytes, "threads": threads},
        )

    def start(self, run: Run) -> None:
        """Takes a job. Raises InvalidRequest where its prompt or its bias cannot be used."""
        prompt = self._checked(run.job.prompt)
        try:
            answer = Answer(
                run.job,
                raw=self.model.raw,
                vocabulary=self.model.size,
                end=self.model.end,
                special=self.model.special,
                room=self.card.context - len(prompt),
            )
        except ValueError as error:
            raise InvalidRequest(str(error)) from error
        self._arrived.append(_Task(run, prompt, answer))

    def _checked(self, tokens: Sequence[int]) -> Ids:
        prompt = np.asarray(tokens, np.int64)
        if not prompt.size:
            raise InvalidRequest("The prompt is empty.")
        wrong = prompt[(prompt < 0) | (prompt >= self.model.size)]
        if wrong.size:
            raise InvalidRequest(
                f"The prompt holds token {wrong[0]}, outside the vocabulary of {self.model.size}."
            )
        if prompt.size >= self.card.context:
            raise ContextLengthExceeded(
                f"The prompt has {prompt.size} tokens; with a context of {self.card.context} it "
                f"may have {self.card.context - 1}."
            )
        return prompt.astype(np.int32)

    def step(self) -> None:
        """Places what arrived, reads a chunk of one prompt, writes a token of every answer."""
        for task in list(self._arrived):
            self._place(task)
        if self._reading:
            self._read(self._reading.popleft())
        if self._writing:
            self._write()

    def _place(self, task: _Task) -> None:
        placement = self._cache.place(task.prompt)
        if placement is None:
            return
        target, reused = placement.target, placement.reused
        if placement.source is not None:
            self.context.copy(placement.source.id, target.id)
        if not self.context.cut(target.id, reused):
            placement = replace(placement, reused=0, source=None)
        task.slot = self._cache.begin(placement, task.prompt)
        task.cached = placement.reused
        self._arrived.remove(task)
        self._reading.append(task)

    def _read(self, task: _Task) -> None:
        slot = _slot(task)
        seconds = BESIDE_SECONDS if self._writing else ALONE_SECONDS
        try:
            logits = self._read_chunk(slot, seconds, aborted=lambda: task.run.cancelled)
        except Aborted:
            self._reading.append(task)  # until the worker drops it
            return
        task.run.prefilled(slot.length, cached=task.cached)
        if logits is None:
            self._reading.append(task)
        else:
            self._writing.append(task)
            self._take(task, logits)

    def _read_chunk(
        self, slot: Slot, seconds: float, aborted: Callable[[], bool] | None = None
    ) -> Logits | None:
        """Reads on in a slot's tokens; the logits when that was all."""
        left = len(slot.tokens) - slot.length
        size = self._pace.chunk(left, seconds)
        began = time.perf_counter()
        logits = self.context.prefill(
            slot.id,
            slot.tokens[slot.length : slot.length + size],
            slot.length,
            want_logits=size == left,
            aborted=aborted,
        )
        self._pace.took(size, time.perf_counter() - began)
        slot.length += size
        # A single token is read by other kernels than several: nobody else may build on it.
        slot.shared = slot.length if len(slot.tokens) > 1 else 0
        return logits

    def _write(self) -> None:
        # llama.cpp computes rows together only where their sequences are numbered in a row.
        tasks = sorted(
            (task for task in self._writing if not task.run.cancelled),
            key=lambda task: _slot(task).id,
        )
        size = 1 if self._one_by_one else max(1, len(tasks))
        for start in range(0, len(tasks), size):
            self._write_together(tasks[start : start + size])

    def _write_together(self, tasks: list[_Task]) -> None:
        asking = [task for task in tasks if task.answer.needs_logits]
        logits = self.context.decode([_next_place(task, task in asking) for task in tasks])
        rows = dict(zip(map(id, asking), logits, strict=True))
        for task in tasks:
            _slot(task).length += 1
            self._take(task, rows.get(id(task)))

    def _take(self, task: _Task, logits: Logits | None) -> None:
        try:
            token = task.answer.take(logits)
        except ApiError as error:
            task.run.fail(error)
        else:
            task.run.generated(token)
            if task.answer.finish is not None:
                task.run.finish(task.answer.finish)
        if task.run.ended:
            self._writing.remove(task)
            self._leave(task)

    def drop(self, run: Run) -> None:
        """Frees the slot of a job that was cancelled; what it holds can be reused."""
        for tasks in (self._arrived, self._reading, self._writing):
            for task in [task for task in tasks if task.run is run]:
                tasks.remove(task)
                self._leave(task)

    def _leave(self, task: _Task) -> None:
        if task.slot is not None:
            self._cache.end(task.slot, task.answer.tokens)
            if not self._exact:
                task.slot.shared = task.slot.length

    def idle(self, wanted: Callable[[], bool]) -> bool:
        """Reads a chunk of a reply again as prompt; False when all are. Breaks off for a job."""
        slot = self._cache.stale()
        if slot is None:
            return False
        if slot.length > slot.shared:
            if not self.context.cut(slot.id, slot.shared):
                slot.shared = 0
            slot.length = slot.shared
        with contextlib.suppress(Aborted):
            self._read_chunk(slot, IDLE_SECONDS, aborted=wanted)
        return True

    def stats(self, stats: EngineStats) -> EngineStats:
        """Adds the KV memory and the tokens that fill it."""
        used = sum(slot.length for slot in self._cache.sequences)
        context = self._context
        kv_bytes = 0 if context is None else context.kv_bytes
        return replace(stats, kv_bytes=kv_bytes, kv_used_tokens=used)

    def close(self) -> None:
        """Frees everything."""
        self._forget_everything()
        if self._context is not None:
            self._context.close()
            self._context = None
        if self._model is not None:
            self._model.close()
            self._model = None


def _next_place(task: _Task, wants_logits: bool) -> Place:
    slot = _slot(task)
    return Place(slot.id, slot.length, task.answer.tokens[-1], wants_logits)


def _slot(task: _Task) -> Slot:
    assert task.slot is not None  # noqa: S101 - tasks read and write only after they were placed
    return task.slot


def _usable_context(wanted: int, trained: int) -> int:
    if wanted <= trained:
        return wanted
    log.warning(
        "The model was trained for a context of %d tokens; [model] context = %d is lowered to it.",
        *(trained, wanted),
    )
    return trained


def _cores() -> int:
    """The cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _repacking_is_safe() -> bool:
    """Repacked weights select AMX kernels where there are any, and those of the library's current
    version end the process with a general protection fault when they load their tile setup."""
    return b"AMX_INT8 = 1" not in library().api.llama_print_system_info()
