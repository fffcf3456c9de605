"""What the llama.cpp generator works with: everything that is loaded and allocated at the start."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hookline.config import ModelSettings
from hookline.engine import Card
from hookline.engines.exactness import chunks_are_exact, widths_are_exact
from hookline.engines.llama_context import LlamaContext
from hookline.engines.llama_images import Looks
from hookline.engines.llama_library import library
from hookline.engines.llama_model import LlamaModel
from hookline.engines.llama_projector import Projector
from hookline.engines.llama_reader import Reader
from hookline.errors import StartError

log = logging.getLogger(__name__)

CPU_CHUNK, GPU_CHUNK = 256, 512
"""Most tokens of a prompt to read at once. On a CPU, 64 are as fast as 512 (294 tokens/s)."""


@dataclass(frozen=True, slots=True)
class Parts:
    """A model in memory with all that belongs to it.

    ``exact`` is whether answers are bit for bit the same alone and beside others, which then is
    promised; ``one_by_one``, whether that takes decoding them one at a time.
    """

    model: LlamaModel
    looks: Looks | None
    context: LlamaContext
    reader: Reader
    tokens: int
    threads: int
    exact: bool
    one_by_one: bool

    def card(self, model_id: str, parallel: int) -> Card:
        """What was loaded, for everybody."""
        model = self.model
        template = model.chat_template or ""
        return Card(
            id=model_id,
            engine="llamacpp",
            context=self.tokens,
            parallel=parallel,
            exact_batches=self.exact,
            vocabulary=model.size,
            chat_template=model.chat_template,
            bos=model.bos,
            eos=model.eos,
            special_tokens=model.special_texts,
            longest_token=model.longest,
            tools="tools" in template,
            thinking="enable_thinking" in template or "<think>" in template,
            vision=self.looks is not None,
            details=self._details(),
        )

    def _details(self) -> dict[str, Any]:
        details = self.model.details()
        details |= {"kv_bytes": self.context.kv_bytes, "threads": self.threads}
        if self.looks is not None:
            details["mmproj"] = self.looks.projector.path.name
        return details

    def close(self) -> None:
        """Frees everything."""
        self.context.close()
        if self.looks is not None:
            self.looks.close()
        self.model.close()


def load_parts(
    path: Path, settings: ModelSettings, beside: Path | None, progress: Callable[[float], None]
) -> Parts:
    """Loads the weights, and the image projector that is set or, if it fits, lies beside them;
    allocates the KV memory. Raises StartError, and leaves nothing behind."""
    exact = settings.exact and settings.gpu_layers == 0
    threads = settings.threads or _cores()
    chunk = GPU_CHUNK if settings.gpu_layers else CPU_CHUNK
    with ExitStack() as undo:
        model = LlamaModel(
            path,
            gpu_layers=settings.gpu_layers,
            repack=not exact and _repacking_is_safe(),
            progress=progress,
        )
        undo.callback(model.close)
        looks = _load_projector(model, settings, beside, threads)
        if looks is not None:
            undo.callback(looks.close)
        tokens = _usable_context(settings.context, model.context)
        context = LlamaContext(
            model,
            context=tokens,
            parallel=settings.parallel,
            chunk=max(chunk, looks.projector.at_once if looks else 0),
            threads=threads,
            exact=exact,
        )
        undo.callback(context.close)
        promised, one_by_one = _check_exactness(model, context, settings)
        undo.pop_all()
    reader = Reader(context, chunk)
    return Parts(model, looks, context, reader, tokens, threads, promised, one_by_one)


def _load_projector(
    model: LlamaModel, settings: ModelSettings, beside: Path | None, threads: int
) -> Looks | None:
    path = settings.mmproj or beside
    if path is None:
        return None
    try:
        projector = Projector(path, model, threads=threads, gpu=settings.gpu_layers != 0)
    except StartError as error:
        if settings.mmproj is not None:
            raise StartError(f"[model] mmproj: {error}") from error
        # What lies beside a model may belong to another.
        log.warning("Images are off: %s", error)
        return None
    log.info("%s: images", path.name)
    return Looks(projector)


def _check_exactness(
    model: LlamaModel, context: LlamaContext, settings: ModelSettings
) -> tuple[bool, bool]:
    """Whether answers are exact, and whether that takes decoding them one by one: where a pass over
    several sequences would change them. The passes it takes to find out warm the model up, too.
    """
    chunks = chunks_are_exact(context, model.size)
    widths = widths_are_exact(context, settings.parallel, model.size)
    if not settings.exact:
        return False, False
    if not (settings.gpu_layers == 0 and model.rewinds and chunks):
        log.warning(
            "Answers are not promised to be bit for bit the same alone and beside others: "
            "that needs the CPU (gpu_layers = 0) and a model with attention only."
        )
        return False, False
    if not widths:
        log.warning(
            "This model's weights (%s) are decoded one request at a time, since batches would "
            "change answers. exact = false in [model] makes it faster.",
            model.details()["description"],
        )
    return True, not widths


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
