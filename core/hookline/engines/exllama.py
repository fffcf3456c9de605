"""The ExLlama engines: a folder of safetensors on an NVIDIA GPU."""

from __future__ import annotations

from collections.abc import Sequence

from hookline.config import ModelSettings
from hookline.engine import Card, Vocabulary
from hookline.engines.exllama_backend import Load
from hookline.engines.exllama_folder import ModelFolder
from hookline.engines.exllama_generator import ExLlamaGenerator
from hookline.engines.exllama_images import ids_in_job
from hookline.engines.exllama_library import TITLES, Version
from hookline.engines.exllamav2 import ExLlamaV2
from hookline.engines.exllamav3 import ExLlamaV3
from hookline.engines.worker import WorkerEngine
from hookline.images import Image

BACKENDS: dict[Version, Load] = {"exllamav2": ExLlamaV2, "exllamav3": ExLlamaV3}


class ExLlamaEngine(WorkerEngine):
    """A model behind the engine boundary; ``draft`` is a small one of the same vocabulary that
    guesses ahead."""

    def __init__(
        self,
        version: Version,
        folder: ModelFolder,
        *,
        model_id: str,
        settings: ModelSettings,
        max_queue: int,
        draft: ModelFolder | None = None,
    ) -> None:
        self.generator = ExLlamaGenerator(
            version,
            BACKENDS[version],
            folder,
            model_id=model_id,
            settings=settings,
            draft=draft,
        )
        super().__init__(self.generator, max_queue=max_queue, name=f"{TITLES[version]} engine")

    @property
    def card(self) -> Card:
        """What was loaded; only after ``load``."""
        return self.generator.card

    def tokenize(self, text: str, *, special: bool = False, bos: bool = False) -> list[int]:
        """Text to token ids."""
        return self.generator.tokenizer.tokenize(text, special=special, bos=bos)

    def detokenize(self, ids: Sequence[int]) -> str:
        """Token ids to text. Raises ValueError for an id outside the vocabulary."""
        return self.generator.tokenizer.detokenize(ids)

    def image_tokens(self, image: Image, index: int = 0) -> list[int]:
        """What stands for an image in a prompt; encodes it, if it is not remembered. Raises
        InvalidRequest where the model cannot see it."""
        return ids_in_job(self.generator.embedding(image), index)

    def vocabulary(self) -> Vocabulary:
        """All tokens."""
        return self.generator.tokenizer.vocabulary()
