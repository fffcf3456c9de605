"""ExLlamaV2: EXL2 and GPTQ models, and unquantized ones, on NVIDIA GPUs."""

from __future__ import annotations

import contextlib
import importlib
import logging
import time
from collections.abc import Callable, Sequence
from typing import Any

from hookline.config import ModelSettings
from hookline.engines.exllama_backend import (
    PAGE,
    Choose,
    DynamicBackend,
    Embedding,
    Progress,
    as_progress,
    check_draft,
    check_quantization,
    free_gpu_memory,
    pages,
    picture,
    usable_context,
)
from hookline.engines.exllama_folder import ModelFolder
from hookline.engines.exllama_library import library, torch_library
from hookline.engines.sampler import Floats
from hookline.errors import StartError
from hookline.images import Image

log = logging.getLogger(__name__)

READS = (None, "exl2", "gptq")
"""Quantizations of safetensors that it loads."""

NO_FLASH_ATTENTION = "flash-attn 2.5.7 or later is missing, or the model does not work with it"


class ChoosingFilter:
    """In the place of a filter (``exllamav2.generator.filters.base.ExLlamaV2Filter``): it is shown
    the logits, and leaves one token."""

    def __init__(self, choose: Choose) -> None:
        self._choose = choose

    def begin(self, prefix: str) -> None:
        """The answer begins."""

    def feed(self, token: Any) -> None:
        """A token was taken; it is the one that was chosen."""

    def can_mask_logits(self) -> bool:
        """Masks the logits itself."""
        return True

    def use_background_worker(self) -> bool:
        """Must choose in the thread that iterates."""
        return False

    def background_drop(self) -> None:
        """Nothing runs in the background."""

    def get_next(self, mask: bool = False) -> bool:
        """Ready to mask."""
        return True

    def mask_logits(self, logits: Any) -> Any:
        """Leaves the chosen token as the only one possible. ``logits`` are the model's own, floats
        on the CPU of the shape ``(vocabulary,)``, and belong to this job's step."""

        def row() -> Floats:
            floats: Floats = logits.numpy()
            return floats

        token = self._choose(row)
        logits.fill_(float("-inf"))
        logits[token] = 0.0
        return logits


class ExLlamaV2(DynamicBackend):
    """A model in GPU memory. Raises StartError where it cannot be loaded."""

    def __init__(
        self,
        folder: ModelFolder,
        settings: ModelSettings,
        draft: ModelFolder | None,
        progress: Progress,
    ) -> None:
        check_quantization(folder, READS, "ExLlamaV2", "EXL2, GPTQ and unquantized models")
        super().__init__(settings, usable_context(settings.context, folder))
        self._library = library("exllamav2")
        self._generators = importlib.import_module("exllamav2.generator")
        self._loras: list[Any] = []
        with contextlib.ExitStack() as undo:
            undo.callback(self.close)
            self._config = self._read_config(folder)
            self._paged = self._can_page(self._config)
            if draft is not None:
                check_draft(folder, draft)
                self._draft, self._draft_cache = self._load(
                    self._read_config(draft), as_progress(progress, 0.0, 0.1), whole=False
                )
            self._model, self._cache = self._load(
                self._config, as_progress(progress, 0.1 if draft else 0.0, 0.95), whole=True
            )
            self._tokenizer = self._library.ExLlamaV2Tokenizer(self._config)
            self._load_loras()
            self._load_vision()
            self.renew()
            undo.pop_all()
        self.kv_bytes = 0 if settings.tensor_parallel else sum(self._cache.footprint())
        progress(1.0)

    def _read_config(self, folder: ModelFolder) -> Any:
        """The library's configuration, for prompts of whole pages: it reads them in chunks of at
        most that length, and pages must not be torn."""
        config = self._library.ExLlamaV2Config(str(folder.path))
        config.max_seq_len = pages(self.context + self.drafts) * PAGE
        config.arch_compat_overrides()
        return config

    def _can_page(self, config: Any) -> bool:
        """Whether several requests can share the KV memory; else they are answered one by one."""
        attention = importlib.import_module("exllamav2.attn")
        if attention.has_flash_attn_with_paged and not config.no_flash_attn:
            return True
        if self.parallel > 1:
            log.warning(
                "Requests are answered one at a time (parallel = 1), not %d: %s.",
                *(self.parallel, NO_FLASH_ATTENTION),
            )
            self.details["one_at_a_time"] = NO_FLASH_ATTENTION
        self.parallel = 1
        return False

    def _load(
        self, config: Any, callback: Callable[[int, int], None], *, whole: bool
    ) -> tuple[Any, Any]:
        """Weights and KV memory; ``whole`` is False for a draft model, which is not split."""
        model = self._library.ExLlamaV2(config)
        suffix = "" if self.settings.cache == "fp16" else f"_{self.settings.cache.upper()}"
        kind = getattr(self._library, f"ExLlamaV2Cache{suffix}")
        split = self.settings.gpu_split if whole else None
        tokens = self.cache_tokens
        if whole and self.settings.tensor_parallel:
            model.load_tp(
                gpu_split=split,
                callback=callback,
                expect_cache_tokens=tokens,
                expect_cache_base=kind,
            )
            return model, self._library.ExLlamaV2Cache_TP(model, base=kind, max_seq_len=tokens)
        if split is not None:
            model.load(gpu_split=split, callback=callback)
            return model, kind(model, max_seq_len=tokens)
        cache = kind(model, max_seq_len=tokens, lazy=True)
        model.load_autosplit(cache, callback=callback)
        return model, cache

    def _load_loras(self) -> None:
        for path in self.settings.loras:
            try:
                lora = self._library.ExLlamaV2Lora.from_directory(self._model, str(path))
            except (OSError, ValueError, KeyError, AssertionError) as error:
                raise StartError(f"[model] loras: {path} cannot be used: {error}") from error
            self._loras.append(lora)
        if self._loras:
            self.details["loras"] = [path.name for path in self.settings.loras]

    def _load_vision(self) -> None:
        """The part that sees, where the model has one whose weights are there."""
        if not self._config.vision_model_type:
            return
        try:
            vision = self._library.ExLlamaV2VisionTower(self._config)
            vision.load()
        except Exception as error:
            log.warning("Images are off: the model's vision part cannot be loaded: %s", error)
        else:
            self._vision = vision
            self.sees = True

    def renew(self) -> None:
        """A new generator over the same weights and KV memory."""
        self.generator = self._generators.ExLlamaV2DynamicGenerator(
            model=self._model,
            cache=self._cache,
            tokenizer=self._tokenizer,
            max_batch_size=self.parallel,
            max_q_size=self.drafts + 1,
            draft_model=self._draft,
            draft_cache=self._draft_cache,
            num_draft_tokens=self.drafts,
            use_ngram_draft=self.settings.ngram_draft,
            max_sampling_threads=1,  # more would choose in threads that constraints do not know
            paged=self._paged,
        )
        if self._loras:
            self.generator.set_loras(self._loras)

    def submit(
        self, ids: Sequence[int], images: Sequence[Embedding], most: int, choose: Choose
    ) -> Any:
        """Queues a job. Its end is told by who chooses, so it has no stop conditions.

        The generator ends a job as many tokens before its limit as it guesses ahead.
        """
        job = self._generators.ExLlamaV2DynamicJob(
            input_ids=torch_library().tensor([list(ids)]),
            max_new_tokens=most + self.drafts,
            gen_settings=self._generators.ExLlamaV2Sampler.Settings.greedy(),
            filters=[ChoosingFilter(choose)],
            embeddings=[image.vectors for image in images],
        )
        self.generator.enqueue(job)
        return job

    def cached(self, job: Any) -> int:
        """Tokens of a job's prompt that were not computed."""
        return int(job.cached_pages * self.generator.page_size + job.cached_tokens)

    def embed(self, image: Image) -> Embedding:
        """Encodes an image."""
        began = time.perf_counter()
        with torch_library().inference_mode():
            vectors = self._vision.get_image_embeddings(
                model=self._model, tokenizer=self._tokenizer, image=picture(image)
            )
        return Embedding(tuple(vectors.get_ids()), vectors, time.perf_counter() - began)

    def close(self) -> None:
        """Frees the memory: what refers to the weights, then the weights and their KV memory."""
        for lora in self._loras:
            lora.unload()
        for model in (self._vision, self._draft, getattr(self, "_model", None)):
            if model is not None:
                model.unload()
        self.generator = self._vision = self._draft = self._draft_cache = None
        self._model = self._cache = self._tokenizer = self._config = None
        self._loras = []
        free_gpu_memory()
