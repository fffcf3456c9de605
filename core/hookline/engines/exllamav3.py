"""ExLlamaV3: EXL3 models, and unquantized ones, on NVIDIA GPUs."""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Callable, Sequence
from typing import Any

from hookline.config import ModelSettings
from hookline.engines.exllama_backend import (
    FIRST_IMAGE_ID,
    NGRAM_MATCH,
    PAGE,
    Choose,
    DynamicBackend,
    Embedding,
    Progress,
    as_progress,
    check_draft,
    check_quantization,
    free_gpu_memory,
    picture,
    usable_context,
)
from hookline.engines.exllama_folder import ModelFolder
from hookline.engines.exllama_library import library, torch_library
from hookline.engines.sampler import Floats
from hookline.errors import InvalidRequest
from hookline.images import Image

log = logging.getLogger(__name__)

BITS = {"q8": 8, "q6": 6, "q4": 4}
"""Bits of a number in quantized KV memory."""

READS = (None, "exl3", "fp8")
"""Quantizations of safetensors that it loads."""


class ChoosingSampler:
    """In the place of the library's samplers (``exllamav3.generator.sampler.Sampler``).

    With ``reqs_past_ids`` the tokens that were guessed ahead are sampled one after another, each
    only once the one before was accepted; without, all at once.
    """

    reqs_torch_seed = False

    def __init__(self, choose: Choose, *, speculates: bool) -> None:
        self._choose = choose
        self.reqs_past_ids = speculates
        self._tensor = torch_library().tensor

    def forward(self, logits: Any, *_: Any, **__: Any) -> Any:
        """The next token, shape ``(1, 1)``, for logits of the shape ``(1, 1, vocabulary)``."""
        return self._tensor([[self._choose(lambda: _row(logits))]])


def _row(logits: Any) -> Floats:
    row: Floats = logits[0, -1].float().cpu().numpy()
    return row


class ExLlamaV3(DynamicBackend):
    """A model in GPU memory. Raises StartError where it cannot be loaded."""

    def __init__(
        self,
        folder: ModelFolder,
        settings: ModelSettings,
        draft: ModelFolder | None,
        progress: Progress,
    ) -> None:
        check_quantization(folder, READS, "ExLlamaV3", "EXL3 and unquantized models")
        super().__init__(settings, usable_context(settings.context, folder))
        self._library = library("exllamav3")
        with contextlib.ExitStack() as undo:
            undo.callback(self.close)
            self._config = self._library.Config.from_directory(str(folder.path))
            self._model = self._library.Model.from_config(self._config)
            self._cache = self._make_cache(self._model)
            if draft is not None:
                check_draft(folder, draft)
                self._load_draft(draft, as_progress(progress, 0.0, 0.1))
            self._load(self._model, as_progress(progress, 0.1 if draft else 0.0, 0.95))
            self._tokenizer = self._library.Tokenizer.from_config(self._config)
            self._load_vision()
            self.renew()
            undo.pop_all()
        self.kv_bytes = int(sum(layer.storage_size() for layer in self._cache.layers.values()))
        progress(1.0)

    def _make_cache(self, model: Any) -> Any:
        """KV memory; it must be there before the weights are loaded, which allocate it."""
        bits = BITS.get(self.settings.cache)
        kind: dict[str, Any] = {"layer_type": self._library.CacheLayer_fp16}
        if bits is not None:
            kind = {"layer_type": self._library.CacheLayer_quant, "k_bits": bits, "v_bits": bits}
        return self._library.Cache(
            model,
            max_num_tokens=self.cache_tokens,
            max_batch_size=self.parallel,
            max_history=self.drafts,
            **kind,
        )

    def _load(self, model: Any, callback: Callable[[int, int], None]) -> None:
        model.load(
            use_per_device=self.settings.gpu_split,
            tensor_p=self.settings.tensor_parallel,
            callback=callback,
            max_batch_size=self.parallel,
        )

    def _load_draft(self, folder: ModelFolder, callback: Callable[[int, int], None]) -> None:
        config = self._library.Config.from_directory(str(folder.path))
        self._draft = self._library.Model.from_config(config)
        self._draft_cache = self._make_cache(self._draft)
        self._draft.load(callback=callback)

    def _load_vision(self) -> None:
        """The part that sees, where the model has one whose weights are there."""
        if "vision" not in self._config.model_classes:
            return
        vision = self._library.Model.from_config(self._config, component="vision")
        try:
            vision.load()
        except Exception as error:
            log.warning("Images are off: the model's vision part cannot be loaded: %s", error)
        else:
            self._vision = vision
            self.sees = True

    def renew(self) -> None:
        """A new generator over the same weights and KV memory."""
        if self.generator is not None:
            self.generator.close()
        self.generator = self._library.Generator(
            model=self._model,
            cache=self._cache,
            tokenizer=self._tokenizer,
            max_batch_size=self.parallel,
            draft_model=self._draft,
            draft_cache=self._draft_cache,
            num_draft_tokens=self.drafts or None,
            ngram_match_min=NGRAM_MATCH if self.settings.ngram_draft else 0,
        )

    def submit(
        self, ids: Sequence[int], images: Sequence[Embedding], most: int, choose: Choose
    ) -> Any:
        """Queues a job. Its end is told by who chooses, so it has no stop conditions."""
        job = self._library.Job(
            input_ids=torch_library().tensor([list(ids)]),
            max_new_tokens=most,
            sampler=ChoosingSampler(choose, speculates=self.drafts > 0),
            embeddings=[image.vectors for image in images],
        )
        self.generator.enqueue(job)
        return job

    def cached(self, job: Any) -> int:
        """Tokens of a job's prompt that were not computed."""
        return int(job.cached_pages * PAGE + job.cached_tokens)

    def embed(self, image: Image) -> Embedding:
        """Encodes an image. Raises InvalidRequest where the model cannot take it."""
        began = time.perf_counter()
        with torch_library().inference_mode():
            vectors = self._vision.get_image_embeddings(self._tokenizer, picture(image))
        if vectors.align:
            raise InvalidRequest(
                "This model's images depend on where in the prompt they stand, which is not "
                "supported.",
                param="messages",
            )
        ids = tuple(vectors.token_list)
        if max(ids, default=0) < FIRST_IMAGE_ID:
            raise InvalidRequest("The model sees nothing in this image.", param="messages")
        return Embedding(ids, vectors, time.perf_counter() - began)

    def close(self) -> None:
        """Frees the memory: the generator, then the weights with their KV memory."""
        if self.generator is not None:
            self.generator.close()
        for model in (self._vision, self._draft, getattr(self, "_model", None)):
            if model is not None:
                model.unload()
        self.generator = self._vision = self._draft = self._draft_cache = None
        self._model = self._cache = self._tokenizer = self._config = None
        free_gpu_memory()
