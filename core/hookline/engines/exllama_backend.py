"""What the two ExLlama versions have in common, and the boundary at which they differ.

Both have a *dynamic generator*: jobs are enqueued, and each ``iterate()`` does a step for all of
them. Its samplers are not used. A job is given something that looks like a part of the library's
own sampling (a filter in version 2, a sampler in version 3), gets the model's logits, and names the
next token: so sampling, constraints and logprobs are Hookline's own, the same for every engine.
"""

from __future__ import annotations

import contextlib
import gc
import logging
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from hookline.config import ModelSettings
from hookline.engines.exllama_folder import ModelFolder
from hookline.engines.exllama_library import torch_library
from hookline.engines.sampler import Floats
from hookline.errors import StartError
from hookline.images import Image

log = logging.getLogger(__name__)

PAGE = 256
"""Tokens of a page of KV memory, in both versions."""

FIRST_IMAGE_ID = 1_000_000_000
"""Ids from here on are vectors of images, in both versions."""

NGRAM_MATCH = 2
"""Tokens that must repeat before n-gram speculation guesses what follows."""

Choose = Callable[[Callable[[], Floats]], int]
"""Names the next token of a job; asks for the logits, shape ``(vocabulary,)``, if it needs them.
Never raises: an exception would end every job of the generator."""

Progress = Callable[[float], None]


@dataclass(slots=True)
class Embedding:
    """An image as vectors: the ids that stand for it in a prompt, text around it included, and
    what the library knows it by. ``seconds`` is how long encoding took."""

    ids: tuple[int, ...]
    vectors: Any
    seconds: float = 0.0


class Backend(Protocol):
    """A model in memory, with a generator over it. Everything is called in one thread, but
    ``embed``."""

    parallel: int
    context: int
    sees: bool
    details: dict[str, Any]
    kv_bytes: int

    def submit(
        self, ids: Sequence[int], images: Sequence[Embedding], most: int, choose: Choose
    ) -> Any:
        """Queues a job for at most ``most`` tokens, and returns what the library knows it by."""
        ...

    def iterate(self) -> list[Mapping[str, Any]]:
        """A step for all jobs, and what happened."""
        ...

    def cached(self, job: Any) -> int:
        """Tokens of a job's prompt that were not computed."""
        ...

    def cancel(self, job: Any) -> None:
        """Frees what a job holds that has not ended."""
        ...

    def renew(self) -> None:
        """A new generator over the same weights."""
        ...

    def embed(self, image: Image) -> Embedding:
        """Encodes an image. Any thread may call it, but none while another iterates."""
        ...

    def close(self) -> None:
        """Frees the memory."""
        ...


class Load(Protocol):
    """Loads a model: the class of a backend."""

    def __call__(
        self, folder: ModelFolder, settings: ModelSettings, draft: ModelFolder | None,
        progress: Progress,
    ) -> Backend: ...  # fmt: skip


class DynamicBackend:
    """What both versions do alike once their model is loaded."""

    def __init__(self, settings: ModelSettings, context: int) -> None:
        self.settings = settings
        self.context = context
        self.parallel = settings.parallel
        self.sees = False
        self.details: dict[str, Any] = {"cache": settings.cache}
        self.kv_bytes = 0
        self.generator: Any = None
        self._draft: Any = None
        self._draft_cache: Any = None
        self._vision: Any = None

    @property
    def drafts(self) -> int:
        """Tokens that are guessed ahead in a step."""
        speculates = self.settings.draft_model is not None or self.settings.ngram_draft
        return self.settings.draft_tokens if speculates else 0

    @property
    def cache_tokens(self) -> int:
        """KV memory for ``parallel`` requests of ``context`` tokens, in whole pages, with room for
        what is guessed ahead."""
        return self.parallel * pages(self.context + self.drafts + 1) * PAGE

    def iterate(self) -> list[Mapping[str, Any]]:
        """A step for all jobs, and what happened."""
        results: list[Mapping[str, Any]] = self.generator.iterate()
        return results

    def cancel(self, job: Any) -> None:
        """Frees what a job holds that has not ended."""
        self.generator.cancel(job)


def pages(tokens: int) -> int:
    """Pages of KV memory that so many tokens fill."""
    return -(-tokens // PAGE)


def usable_context(wanted: int, folder: ModelFolder) -> int:
    """The context that is set, or the one that the model was trained for if that is less."""
    trained = folder.context
    if trained is None or wanted <= trained:
        return wanted
    log.warning(
        "The model was trained for a context of %d tokens; [model] context = %d is lowered to it.",
        *(trained, wanted),
    )
    return trained


@contextlib.contextmanager
def one_line(folder: ModelFolder, settings: ModelSettings) -> Iterator[None]:
    """Turns what the libraries raise while they load into a StartError of one line."""
    try:
        yield
    except StartError:
        raise
    except Exception as error:
        name = folder.path.name
        if type(error).__name__ == "OutOfMemoryError":
            raise StartError(
                f"{name} does not fit into GPU memory with [model] context = {settings.context}, "
                f'parallel = {settings.parallel} and cache = "{settings.cache}": lower one of '
                'them (cache = "q8", "q6" or "q4"), or take a smaller quantization'
            ) from error
        reason = " ".join(f"{type(error).__name__}: {error}".split())[:500]
        raise StartError(f"{name} cannot be loaded: {reason}") from error


def check_quantization(
    folder: ModelFolder, reads: Collection[str | None], engine: str, what: str
) -> None:
    """Raises StartError for weights of a kind that the engine does not read; ``what`` it does."""
    if folder.quantization not in reads:
        raise StartError(
            f"{folder.path.name} is quantized with {folder.quantization}, which {engine} does not "
            f"read; it reads {what}"
        )


def check_draft(folder: ModelFolder, draft: ModelFolder) -> None:
    """Raises StartError for a draft model that guesses tokens which the model does not have."""
    if (draft.vocabulary or 0) > (folder.vocabulary or 0):
        raise StartError(
            f"[model] draft_model: {draft.path.name} has {draft.vocabulary} tokens and "
            f"{folder.path.name} only {folder.vocabulary}: a draft model must share the vocabulary"
        )


def as_progress(progress: Progress, start: float, end: float) -> Callable[[int, int], None]:
    """The callback of loaders, which count modules, for a part of the whole."""
    return lambda done, total: progress(start + (end - start) * done / max(total, 1))


def picture(image: Image) -> Any:
    """An image as the libraries want it."""
    from PIL import Image as Pictures

    return Pictures.frombytes("RGB", (image.width, image.height), image.rgb)


def free_gpu_memory() -> None:
    """Gives back what nothing refers to any more. The libraries' objects refer to each other."""
    gc.collect()
    torch_library().cuda.empty_cache()
