"""The llama.cpp engine: a GGUF model on whatever llama.cpp runs on."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from hookline.config import ModelSettings
from hookline.engine import Card, Vocabulary
from hookline.engines.llama_generator import LlamaCppGenerator
from hookline.engines.worker import WorkerEngine
from hookline.images import Image


class LlamaCppEngine(WorkerEngine):
    """A GGUF model behind the engine boundary; ``beside`` is the image projector found beside it,
    which ``[model] mmproj`` overrides."""

    def __init__(
        self,
        path: Path,
        *,
        model_id: str,
        settings: ModelSettings,
        max_queue: int,
        beside: Path | None = None,
    ) -> None:
        self.generator = LlamaCppGenerator(
            path, model_id=model_id, settings=settings, beside=beside
        )
        super().__init__(self.generator, max_queue=max_queue, name="llama.cpp engine")

    @property
    def card(self) -> Card:
        """What was loaded; only after ``load``."""
        return self.generator.card

    def tokenize(self, text: str, *, special: bool = False, bos: bool = False) -> list[int]:
        """Text to token ids. Raises NoModel while the model is loaded again."""
        return self.generator.model.tokenize(text, special=special, bos=bos)

    def detokenize(self, ids: Sequence[int]) -> str:
        """Token ids to text. Raises ValueError for an id outside the vocabulary."""
        return self.generator.model.detokenize(ids)

    def image_tokens(self, image: Image, index: int = 0) -> list[int]:
        """What stands for an image in a prompt. Raises InvalidRequest without a projector."""
        return self.generator.layout(image).ids(index)

    def vocabulary(self) -> Vocabulary:
        """All tokens."""
        return self.generator.model.vocabulary()
