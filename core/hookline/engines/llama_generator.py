"""The llama.cpp generator: continuous batching over the sequences of one context."""

from __future__ import annotations

import contextlib
import logging
import os
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from hookline.config import ModelSettings
from hookline.engine import Card, EngineStats, Job
from hookline.engines.answer import Answer
from hookline.engines.exactness import chunks_are_exact, widths_are_exact
from hookline.engines.llama_context import Aborted, LlamaContext, Logits, Place
from hookline.engines.llama_images import Look, Looks
from hookline.engines.llama_library import library
from hookline.engines.llama_model import LlamaModel
from hookline.engines.llama_projector import Layout, Projector
from hookline.engines.llama_reader import Reader
from hookline.engines.prefix_cache import PrefixCache
from hookline.engines.prefix_cache import Sequence as Slot
from hookline.engines.run import Run
from hookline.engines.spans import IMAGE, Ids, Span, Spans, find_spans, position
from hookline.errors import ApiError, ContextLengthExceeded, InvalidRequest, NoModel, StartError
from hookline.images import Image

log = logging.getLogger(__name__)

CPU_CHUNK, GPU_CHUNK = 256, 512
"""Most tokens of a prompt to read at once. On a CPU, 64 are as fast as 512 (294 tokens/s)."""

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
        self._chunk = GPU_CHUNK if settings.gpu_layers else CPU_CHUNK
        self._model: LlamaModel | None = None
        self._looks: Looks | None = None
        self._context: LlamaContext | None = None
        self._reader: Reader | None = None
        self._card: Card | None = None
        self._one_by_one = False
        self._forget_everything()

    def _forget_everything(self) -> None:
        self._cache = PrefixCache(self.parallel)
        self._arrived: list[_Task] = []
        self._reading: deque[_Task] = deque()
        self._writing: list[_Task] = []

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
    def reader(self) -> Reader:
        """Reads prompts into it."""
        if self._reader is None:
            raise NoModel("The model is not loaded. Try again in a moment.", retry_after=2)
        return self._reader

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
        self._looks = self._load_projector(model, threads)
        at_once = self._looks.projector.at_once if self._looks else 0
        self._context = LlamaContext(
            model,
            context=context,
            parallel=self.parallel,
            chunk=max(self._chunk, at_once),
            threads=threads,
            exact=self._exact,
        )
        self._reader = Reader(self._context, self._chunk)
        promised = self._check_exactness(model)
        self._card = self._describe(model, context, threads, exact=promised)
        log.info(
            "%s: %d sequences of %d tokens, %.0f MiB of KV memory, %d threads",
            *(self._path.name, self.parallel, context, self._context.kv_bytes / 2**20, threads),
        )

    def _load_projector(self, model: LlamaModel, threads: int) -> Looks | None:
        """Loads the image projector, if there is one. One that was not asked for, but lies beside
        the model, may belong to another."""
        path = self._settings.mmproj or self._beside
        if path is None:
            return None
        try:
            projector = Projector(path, model, threads=threads, gpu=self._settings.gpu_layers != 0)
        except StartError as error:
            if self._settings.mmproj is not None:
                raise StartError(f"[model] mmproj: {error}") from error
            log.warning("Images are off: %s", error)
            return None
        log.info("%s: images", path.name)
        return Looks(projector)

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
            vision=self._looks is not None,
            details=model.details()
            | {"kv_bytes": self.context.kv_bytes, "threads": threads}
            | ({"mmproj": self._looks.projector.path.name} if self._looks else {}),
        )

    def layout(self, image: Image) -> Layout:
        """What an image becomes. Raises InvalidRequest where the model cannot see it."""
        if self._looks is None:
            self.model  # noqa: B018 - raises while it is loaded again
            raise InvalidRequest("This model cannot see images.", param="messages")
        return self._looks.projector.layout(image.width, image.height)

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
        look = self._looks.look(spans) if self._looks and spans else None
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
            logits = self.reader.read(
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
            self.reader.read(slot, IDLE_SECONDS, aborted=wanted)
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
        self._reader = None
        if self._context is not None:
            self._context.close()
            self._context = None
        if self._looks is not None:
            self._looks.close()
            self._looks = None
        if self._model is not None:
            self._model.close()
            self._model = None


def _next_place(task: _Task, wants_logits: bool) -> Place:
    slot = _slot(task)
    return Place(slot.id, slot.position(slot.length), task.answer.tokens[-1], wants_logits)


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
