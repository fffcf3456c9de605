"""The generator of both ExLlama engines: jobs in, tokens out, over the library's own batching."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, TypeVar

from hookline.config import ModelSettings
from hookline.engine import Card, EngineStats, Job
from hookline.engines.answer import Answer
from hookline.engines.exllama_backend import Backend, Embedding, Load, one_line
from hookline.engines.exllama_card import describe
from hookline.engines.exllama_folder import ModelFolder
from hookline.engines.exllama_images import Embeddings, ids_for_library
from hookline.engines.exllama_library import TITLES, Version
from hookline.engines.exllama_task import Task
from hookline.engines.exllama_tokenizer import FolderTokenizer
from hookline.engines.run import Run
from hookline.errors import (
    ContextLengthExceeded,
    EngineUnavailable,
    InvalidRequest,
    NoModel,
)
from hookline.images import Image

log = logging.getLogger(__name__)

T = TypeVar("T")


class ExLlamaGenerator:
    """Steps the library's generator and tells each `Run` what happened to its job."""

    def __init__(
        self,
        version: Version,
        load: Load,
        folder: ModelFolder,
        *,
        model_id: str,
        settings: ModelSettings,
        draft: ModelFolder | None = None,
    ) -> None:
        self.parallel = settings.parallel
        self._version = version
        self._load = load
        self._folder = folder
        self._draft = draft
        self._model_id = model_id
        self._settings = settings
        self._backend: Backend | None = None
        self._tokenizer: FolderTokenizer | None = None
        self._card: Card | None = None
        self._tasks: list[Task] = []
        self._proved = False
        self._renewals = 0
        self._gpu = threading.Lock()
        self._embeddings = Embeddings(self._embed)

    @property
    def backend(self) -> Backend:
        """The loaded model. Raises NoModel while there is none."""
        return _loaded(self._backend)

    @property
    def tokenizer(self) -> FolderTokenizer:
        """The model's tokenizer; stays while the model is loaded again. Raises NoModel before."""
        return _loaded(self._tokenizer)

    @property
    def card(self) -> Card:
        """What was loaded; stays while the model is loaded again after a fault."""
        return _loaded(self._card)

    def load(self, progress: Callable[[float], None]) -> None:
        """Loads the weights and allocates the KV memory. Raises StartError."""
        tokenizer = FolderTokenizer(self._folder, self._version)
        with one_line(self._folder, self._settings):
            backend = self._load(self._folder, self._settings, self._draft, progress)
        self._backend, self._tokenizer = backend, tokenizer
        self.parallel = backend.parallel
        self._embeddings = Embeddings(self._embed)
        self._proved = False
        self._card = describe(
            self._version, self._model_id, self._folder, self._draft, backend, tokenizer
        )
        log.info(
            "%s: %s, context %d x %d tokens, %.0f MiB of KV memory (%s)",
            *(self._folder.path.name, TITLES[self._version], backend.parallel, backend.context),
            *(backend.kv_bytes / 2**20, self._settings.cache),
        )
        if self._settings.exact:
            log.warning(
                "Answers are not promised to be bit for bit the same alone and beside others: "
                "%s computes batches in its own ways. exact = false in [model] says so, too.",
                TITLES[self._version],
            )

    def embedding(self, image: Image) -> Embedding:
        """An image as vectors. Any thread may ask. Raises InvalidRequest where the model cannot
        see it."""
        backend = self.backend
        if not backend.sees:
            raise InvalidRequest("This model cannot see images.", param="messages")
        with self._gpu:
            return self._embeddings.get(image)

    def _embed(self, image: Image) -> Embedding:
        return self.backend.embed(image)

    def start(self, run: Run) -> None:
        """Takes a job. Raises InvalidRequest where its prompt or its bias cannot be used."""
        images = [self.embedding(image) for image in run.job.images]
        prompt = ids_for_library(run.job.prompt, images)
        self._check(run.job)
        card, tokenizer = self.card, self.tokenizer
        room = card.context - len(prompt)
        try:
            answer = Answer(
                run.job,
                raw=tokenizer.raw,
                vocabulary=card.vocabulary,
                end=tokenizer.end,
                special=tokenizer.special,
                room=room,
            )
        except ValueError as error:
            raise InvalidRequest(str(error)) from error
        most = room if run.job.max_tokens is None else min(room, run.job.max_tokens)
        task = Task(run, answer, card.vocabulary)
        task.handle = self.backend.submit(prompt, images, most, task.choose)
        self._tasks.append(task)
        for image in images:
            run.looked(image.seconds)
            image.seconds = 0.0

    def _check(self, job: Job) -> None:
        if not job.prompt:
            raise InvalidRequest("The prompt is empty.")
        size, context = self.card.vocabulary, self.card.context
        wrong = next((token for token in job.prompt if token >= size), None)
        if wrong is not None:
            raise InvalidRequest(
                f"The prompt holds token {wrong}, outside the vocabulary of {size}."
            )
        if len(job.prompt) >= context:
            raise ContextLengthExceeded(
                f"The prompt has {len(job.prompt)} tokens; with a context of {context} it may have "
                f"{context - 1}."
            )

    def step(self) -> None:
        """One step of the library for all jobs.

        A fault there ends all of them; the library's generator is then made anew over the weights
        that are loaded. One that fails before it ever worked is the worker's to load again.
        """
        try:
            with self._gpu:
                results = self.backend.iterate()
        except Exception as error:
            if not self._proved:
                raise
            self._renew(error)
            return
        self._proved = True
        for result in results:
            self._hear(result)
        for task in list(self._tasks):
            self._tell(task)

    def _renew(self, error: Exception) -> None:
        log.exception("%s failed; its generator is made anew", TITLES[self._version])
        self._proved = False
        self._renewals += 1
        tasks, self._tasks = self._tasks, []
        for task in tasks:
            task.run.fail(EngineUnavailable(f"The engine failed: {error}. Try again."))
        self.backend.renew()

    def _hear(self, result: Mapping[str, Any]) -> None:
        """Takes one of the library's results; tokens are known from their choice already."""
        task = next((task for task in self._tasks if task.handle is result["job"]), None)
        if task is None:
            return
        task.gone = task.gone or bool(result["eos"])
        if result["stage"] == "prefill":
            self._read(task, result["curr_progress"])
        elif result["stage"] == "error":
            task.error = result["error"]

    def _read(self, task: Task, done: int) -> None:
        """The library counts the last token of a prompt to the answer."""
        total = len(task.run.job.prompt)
        cached = self.backend.cached(task.handle)
        task.run.prefilled(total if done >= total - 1 else done, cached=cached)

    def _tell(self, task: Task) -> None:
        if task.said:
            if not task.spoke:
                self._read(task, len(task.run.job.prompt))
                task.spoke = True
            task.run.generated(*task.said)
            task.said.clear()
        if task.error is not None:
            task.run.fail(task.error)
        elif task.answer.finish is not None:
            task.run.finish(task.answer.finish)
        elif task.gone:
            task.run.fail(EngineUnavailable("The engine ended this answer too early. Try again."))
        if task.run.ended:
            self._leave(task)

    def _leave(self, task: Task) -> None:
        self._tasks.remove(task)
        if not task.gone:
            self.backend.cancel(task.handle)

    def drop(self, run: Run) -> None:
        """Frees the place of a job that was cancelled."""
        for task in [task for task in self._tasks if task.run is run]:
            self._leave(task)

    def idle(self, wanted: Callable[[], bool]) -> bool:
        """Nothing can wait."""
        return False

    def stats(self, stats: EngineStats) -> EngineStats:
        """Adds the KV memory, the tokens of running jobs in it, and the generators made anew."""
        tasks = list(self._tasks)
        used = sum(len(task.run.job.prompt) + len(task.answer.tokens) for task in tasks)
        return replace(
            stats,
            kv_bytes=0 if self._backend is None else self._backend.kv_bytes,
            kv_used_tokens=used,
            restarts=stats.restarts + self._renewals,
        )

    def close(self) -> None:
        """Frees everything."""
        self._tasks = []
        backend, self._backend = self._backend, None
        if backend is not None:
            with self._gpu:
                backend.close()


def _loaded(thing: T | None) -> T:
    if thing is None:
        raise NoModel("The model is not loaded. Try again in a moment.", retry_after=2)
    return thing
