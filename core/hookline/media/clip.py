"""Images and texts as vectors of one space (CLIP, Radford et al. 2021), from a local checkpoint."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hookline.errors import ConfigError, MissingExtra

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    from PIL import Image

    Vectors = npt.NDArray[np.float32]

BATCH = 16
"""Images or texts that go through the model at once, which bounds its memory."""


class Clip:
    """A CLIP model. Loaded when it is made; may be shared by threads. Never fetches anything.

    ``checkpoint`` is a file of weights, ``architecture`` one of open_clip's built-in names, such
    as ``ViT-B-32``. Raises MissingExtra where the library is not installed, ConfigError where
    checkpoint and architecture cannot be used.
    """

    def __init__(self, checkpoint: Path, architecture: str) -> None:
        open_clip = _library()
        if not checkpoint.is_file():
            raise ConfigError(f"CLIP: there is no checkpoint {checkpoint}.")
        _check(open_clip.get_model_config(architecture), architecture)
        try:
            self._model, self._preprocess = open_clip.create_model_from_pretrained(
                architecture, pretrained=str(checkpoint)
            )
        except Exception as error:  # whatever torch, pickle or safetensors raise for a wrong file
            reason = " ".join(str(error).split())[:300]
            raise ConfigError(
                f"CLIP: {checkpoint} holds no weights of '{architecture}': {reason}"
            ) from error
        self._model.eval()
        self._tokenize = open_clip.get_tokenizer(architecture)
        self._lock = threading.Lock()

    @property
    def scale(self) -> float:
        """What cosines are multiplied with before a softmax, as the model learned it."""
        return float(self._model.logit_scale.detach().exp())

    def embed_images(self, images: Sequence[Image.Image]) -> Vectors:
        """Vectors of length 1, shape ``(len(images), d)``."""
        return self._embed(
            images,
            lambda part: [self._preprocess(image.convert("RGB")) for image in part],
            self._model.encode_image,
        )

    def embed_texts(self, texts: Sequence[str]) -> Vectors:
        """Vectors of length 1 in the same space, shape ``(len(texts), d)``."""
        return self._embed(texts, lambda part: list(self._tokenize(part)), self._model.encode_text)

    def _embed(self, things: Sequence[Any], prepare: Any, encode: Any) -> Vectors:
        import numpy as np
        import torch

        vectors = [np.zeros((0, self._model.visual.output_dim), np.float32)]
        with self._lock, torch.inference_mode():
            for start in range(0, len(things), BATCH):
                batch = torch.stack(prepare(list(things[start : start + BATCH])))
                vectors.append(encode(batch, normalize=True).float().numpy())
        return np.concatenate(vectors)


def _library() -> Any:
    try:
        import open_clip
    except ImportError as error:
        raise MissingExtra("CLIP", "clip", error.name) from error
    return open_clip


def _check(config: dict[str, Any] | None, architecture: str) -> None:
    """Raises ConfigError for an architecture that is unknown, or whose parts lie on a hub."""
    if config is None:
        raise ConfigError(f"CLIP: open_clip has no architecture '{architecture}'.")
    if any(name.startswith("hf_") for name in config.get("text_cfg", {})):
        raise ConfigError(
            f"CLIP: the tokenizer of '{architecture}' would have to be fetched; use an "
            "architecture that brings its own, such as ViT-B-32."
        )
