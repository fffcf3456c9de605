"""The labels that fit an image best (zero-shot classification), with their shares."""

from __future__ import annotations

import asyncio
import logging

from hookline import ConfigError, Image
from hookline.media.clip import Clip
from hookline_vision.settings import VisionSettings
from hookline_vision.told import UNREAD, Told, require

log = logging.getLogger(__name__)


class Labels:
    """Knows labels, and compares images with them in a thread: a fraction of a second for one of
    any size, since CLIP looks at a small copy."""

    def __init__(self, settings: VisionSettings) -> None:
        require("open_clip", "[plugin.vision] fallback = 'clip'", "clip")
        if settings.clip_checkpoint is None:
            raise ConfigError("[plugin.vision] fallback = 'clip' needs 'clip_checkpoint' as well.")
        self._checkpoint = settings.clip_checkpoint
        self._settings = settings

    async def load(self) -> None:
        """Loads the model and embeds the labels. Raises ConfigError for a wrong checkpoint."""
        await asyncio.to_thread(self._load)

    async def describe(self, image: Image, seconds: float) -> Told:
        """The best labels in one line."""
        try:
            return Told(await asyncio.to_thread(self._describe, image))
        except Exception:  # an odd image must cost neither its request nor the plugin
            log.exception("no labels for an image of %d x %d pixels", image.width, image.height)
            return Told(UNREAD, "It could not be read; the server's log has the details.")

    async def close(self) -> None:
        """Nothing was started."""

    def _load(self) -> None:
        self._clip = Clip(self._checkpoint, self._settings.clip_architecture)
        self._labels = self._clip.embed_texts(self._settings.clip_labels)

    def _describe(self, image: Image) -> str:
        import numpy as np
        from PIL import Image as Pillow

        picture = Pillow.frombytes("RGB", (image.width, image.height), image.rgb)
        (vector,) = self._clip.embed_images([picture])
        logits = self._clip.scale * (self._labels @ vector)
        shares = np.exp(logits - logits.max())
        shares /= shares.sum()
        best = np.argsort(-shares, kind="stable")[: self._settings.clip_best]
        told = ", ".join(f"{self._settings.clip_labels[i]} ({shares[i]:.0%})" for i in best)
        return f"[An image that cannot be shown here. What it looks like to a machine: {told}.]"
