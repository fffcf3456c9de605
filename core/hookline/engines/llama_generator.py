"""The llama.cpp generator: continuous batching over the sequences of one context."""

from __future__ import annotations

import contextlib
import logging
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from hookline.config import ModelSettings
from hookline.engine import Card, EngineStats, Job
from hookline.engines.answer import Answer
from hookline.engines.llama_context import Aborted, LlamaContext, Logits, Place
from hookline.engines.llama_images import Look
from hookline.engines.llama_model import LlamaModel
from hookline.engines.llama_parts import Parts, load_parts
from hookline.engines.llama_projector import Layout
from hookline.engines.prefix_cache import PrefixCache
from hookline.engines.prefix_cache import Sequence as Slot
from hookline.engines.run import Run
from hookline.engines.spans import IMAGE, Ids, Span, Spans, find_spans, position
from hookline.errors import ApiError, ContextLengthExceeded, InvalidRequest, NoModel
from hookline.images import Image

log = logging.getLogger(__name__)

BESIDE_SECONDS = 0.06
"""How long a prompt chunk may hold up the tokens of others."""

ALONE_SECONDS = 0.25
"""How long a prompt chunk takes when only other prompts wait for their turn."""

IDLE_SECONDS = 0.05
"""How long work that can wait may hold up a job that arrives."""

PATIENCE, BUSY_PATIENCE = 0.05, 0.001
"""How long to wait for an image that is being scaled, in a step that has nothing else to do, or
has."""


@dataclass(slots=True, eq=False)
class _Task:
    """A job in the generator; without a slot until its prompt was placed."""

    run: Run
    prompt: Ids
    spans: Spans
    answer: Answer
    look: Look | None = None
    slot: Slot | None = None
    cached: int = 0


class LlamaCppGenerator:
    """Reads prompts in chunks and writes one token a step for every sequence that answers.

    A step reads at most one chunk, of the prompt whose turn it is, and then decodes all answers in
    one pass. Chunk sizes follow the clock; they do not change a bit of what is computed. While
    nobody asks, replies are read again as prompt, so that the next turn of their conversation
    finds KV that is exactly what reading the whole conversation would give.
    """

    def __init__(
        self, path: Path, *, model_id: str, settings: ModelSettings, beside: Path | None = None
    ) -> None:
        self.parallel = settings.parallel
        self._path = path
        self._model_id = model_id
        self._settings = settings
        self._beside = beside
        self._exact = settings.exact and settings.gpu_layers == 0
        self._parts: Parts | None = None
        self._card: Card | None = None
        self._one_by_one = False
        self._forget_everything()

    def _forget_everything(self) -> None:
        self._cache = PrefixCache(self.parallel)
        self._arrived: list[_Task] = []
        self._reading: deque[_Task] = deque()
        self._writing: list[_Task] = []

    @property
    def parts(self) -> Parts:
        """The loaded model and what belongs to it. Raises NoModel while there is none."""
        if self._parts is None:
            raise NoModel("The model is not loaded. Try again in a moment.", retry_after=2)
        return self._parts

    @property
    def model(self) -> LlamaModel:
        """The loaded model. Raises NoModel while there is none."""
        return self.parts.model

    @property
    def context(self) -> LlamaContext:
        """The KV memory of the loaded model. Raises NoModel while there is none."""
        return self.parts.context

    @property
    def card(self) -> Card:
        """What was loaded; stays while the model is loaded again after a fault."""
        if self._card is None:
            raise NoModel("The model is not loaded. Try again in a moment.", retry_after=2)
        return self._card

    def load(self, progress: Callable[[float], None]) -> None:
        """Loads the weights and allocates the KV memory. Raises StartError."""
        parts = self._parts = load_parts(self._path, self._settings, self._beside, progress)
        self._card = parts.card(self._model_id, self.parallel)
        self._one_by_one = parts.one_by_one
        log.info(
            "%s: context %d x %d tokens, %.0f MiB of KV memory, threads: %d",
            *(self._path.name, self.parallel, parts.tokens),
            *(parts.context.kv_bytes / 2**20, parts.threads),
        )

    def layout(self, image: Image) -> Layout:
        """What an image becomes. Raises InvalidRequest where the model cannot see it."""
        looks = self.parts.looks
        if looks is None:
            raise InvalidRequest("This model cannot see images.", param="messages")
        return looks.projector.layout(image.width, image.height)

    def start(self, run: Run) -> None:
        """Takes a job. Raises InvalidRequest where its prompt or its bias cannot be used."""
        prompt, spans = self._checked(run.job)
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
        looks = self.parts.looks
        look = looks.look(spans) if looks and spans else None
        self._arrived.append(_Task(run, prompt, spans, answer, look))

    def _checked(self, job: Job) -> tuple[Ids, Spans]:
        prompt = np.asarray(job.prompt, np.int64)
        if not prompt.size:
            raise InvalidRequest("The prompt is empty.")
        lowest = -len(job.images)
        wrong = prompt[(prompt < lowest) | (prompt >= self.model.size)]
        if wrong.size:
            raise InvalidRequest(
                f"The prompt holds token {wrong[0]}, outside the vocabulary of {self.model.size}."
            )
        if prompt.size >= self.card.context:
            raise ContextLengthExceeded(
                f"The prompt has {prompt.size} tokens; with a context of {self.card.context} it "
                f"may have {self.card.context - 1}."
            )
        slices = [self.layout(image).slices for image in job.images]
        try:
            spans = find_spans(prompt, job.images, slices)
        except ValueError as error:
            raise InvalidRequest(f"The prompt's images cannot be used: {error}.") from error
        return np.maximum(prompt, IMAGE).astype(np.int32), spans

    def step(self) -> None:
        """Places what arrived, reads a chunk of one prompt, writes a token of every answer."""
        for task in list(self._arrived):
            self._place(task)
        if self._reading:
            self._read(self._reading.popleft())
        if self._writing:
            self._write()

    def _place(self, task: _Task) -> None:
        placement = self._cache.place(task.prompt, task.spans)
        if placement is None:
            return
        target, reused = placement.target, placement.reused
        if placement.source is not None:
            self.context.copy(placement.source.id, target.id)
        if not self.context.cut(target.id, position(task.spans, reused)):
            placement = replace(placement, reused=0, source=None)
        task.slot = self._cache.begin(placement, task.prompt, task.spans)
        task.cached = placement.reused
        self._arrived.remove(task)
        self._reading.append(task)

    def _read(self, task: _Task) -> None:
        slot = _slot(task)
        vectors = None
        if task.look and (span := slot.run().span):
            vectors = task.look.vectors(span)
            if vectors is None:
                self._encode(task, task.look, span)
                return
        seconds = BESIDE_SECONDS if self._writing else ALONE_SECONDS
        try:
            logits = self.parts.reader.read(
                slot, seconds, vectors=vectors, aborted=lambda: task.run.cancelled
            )
        except Aborted:
            self._reading.append(task)  # until the worker drops it
            return
        task.run.prefilled(slot.length, cached=task.cached)
        if logits is None:
            self._reading.append(task)
        else:
            self._writing.append(task)
            self._take(task, logits)

    def _encode(self, task: _Task, look: Look, span: Span) -> None:
        """Encodes the slice that a prompt comes to, if its image is ready; reading it is another
        step, so that nobody waits for both."""
        busy = bool(self._writing or self._reading)
        try:
            seconds = look.encode(span, BUSY_PATIENCE if busy else PATIENCE)
        except Exception as error:
            task.run.fail(error)
            self._leave(task)
        else:
            task.run.looked(seconds)
            self._reading.append(task)

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
            if not self.context.cut(slot.id, slot.position(slot.shared)):
                slot.shared = 0
            slot.length = slot.shared
        if slot.run().span is not None:
            slot.drop_rest()  # its vectors may be forgotten by now
            return True
        with contextlib.suppress(Aborted):
            self.parts.reader.read(slot, IDLE_SECONDS, aborted=wanted)
        return True

    def stats(self, stats: EngineStats) -> EngineStats:
        """Adds the KV memory and the tokens that fill it."""
        used = sum(slot.length for slot in self._cache.sequences)
        parts = self._parts
        kv_bytes = 0 if parts is None else parts.context.kv_bytes
        return replace(stats, kv_bytes=kv_bytes, kv_used_tokens=used)

    def close(self) -> None:
        """Frees everything."""
        self._forget_everything()
        if self._parts is not None:
            self._parts.close()
            self._parts = None


def _next_place(task: _Task, wants_logits: bool) -> Place:
    slot = _slot(task)
    return Place(slot.id, slot.position(slot.length), task.answer.tokens[-1], wants_logits)


def _slot(task: _Task) -> Slot:
    assert task.slot is not None  # noqa: S101 - tasks read and write only after they were placed
    return task.slot
