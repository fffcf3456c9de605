"""What a model that cannot see is told about an image: the text in it, or labels that fit it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from importlib.util import find_spec
from typing import TYPE_CHECKING, Protocol

from hookline import ConfigError, Image, MissingExtra, quoted
from hookline.media.clip import Clip
from hookline.media.ocr import TextReader
from hookline_vision.cache import Cache
from hookline_vision.settings import VisionSettings

if TYPE_CHECKING:
    from PIL.Image import Image as Picture

log = logging.getLogger(__name__)

UNREAD = "[An image that cannot be shown here, nor read by a machine.]"

REMEMBERED = 4_000_000
"""Characters of descriptions that are kept, for images that come again."""


class Describer(Protocol):
    """Knows one way to say what is in an image. Its methods compute, and run in a thread."""

    def load(self) -> None:
        """Loads what describing needs, once, before the first image."""
        ...

    def describe(self, picture: Picture) -> str:
        """What is said about an image, as it may stand in a prompt."""
        ...


class TextInImage:
    """The text in an image, quoted, so that nothing in it can pass for somebody else's words."""

    def __init__(self) -> None:
        _require("rapidocr", "[plugin.vision] fallback = 'ocr'", "ocr")
        self._reader: TextReader | None = None

    def load(self) -> None:
        """Loads the models of the reader."""
        self._reader = self._reader or TextReader()

    def describe(self, picture: Picture) -> str:
        """The text, marked as what it is."""
        text = self._reader.read(picture).strip() if self._reader else ""
        if not text:
            return "[An image that cannot be shown here. No text was found in it.]"
        return (
            "[An image that cannot be shown here. The text in it, read by a machine:]\n"
            f"{quoted(text)}\n[End of the image.]"
        )


class Labels:
    """The labels that fit an image best (zero-shot classification), with their shares."""

    def __init__(self, settings: VisionSettings) -> None:
        _require("open_clip", "[plugin.vision] fallback = 'clip'", "clip")
        if settings.clip_checkpoint is None:
            raise ConfigError("[plugin.vision] fallback = 'clip' needs 'clip_checkpoint' as well.")
        self._checkpoint = settings.clip_checkpoint
        self._settings = settings
        self._clip: Clip | None = None

    def load(self) -> None:
        """Loads the model and embeds the labels. Raises ConfigError for a wrong checkpoint."""
        if self._clip is None:
            self._clip = Clip(self._checkpoint, self._settings.clip_architecture)
            self._labels = self._clip.embed_texts(self._settings.clip_labels)

    def describe(self, picture: Picture) -> str:
        """The best labels in one line."""
        import numpy as np

        if self._clip is None:
            raise RuntimeError("load() was not called")
        (vector,) = self._clip.embed_images([picture])
        logits = self._clip.scale * (self._labels @ vector)
        shares = np.exp(logits - logits.max())
        shares /= shares.sum()
        best = np.argsort(-shares, kind="stable")[: self._settings.clip_best]
        told = ", ".join(f"{self._settings.clip_labels[i]} ({shares[i]:.0%})" for i in best)
        return f"[An image that cannot be shown here. What it looks like to a machine: {told}.]"


class Fallback:
    """Describes images one at a time, off the event loop. One event loop only."""

    def __init__(self, describer: Describer) -> None:
        self._describer = describer
        self._turn = asyncio.Lock()
        self._told = Cache[str](REMEMBERED)

    async def load(self) -> None:
        """Loads what describing needs."""
        async with self._turn:
            await asyncio.to_thread(self._describer.load)

    async def describe(self, image: Image, report: Callable[[], None]) -> str:
        """What to tell about an image. ``report`` is called where that takes its time."""
        if (known := self._told.get(image.digest)) is not None:
            return known
        report()
        async with self._turn:
            text = await asyncio.to_thread(self._describe, image)
        self._told.put(image.digest, text, len(text))
        return text

    def _describe(self, image: Image) -> str:
        from PIL import Image as Pillow

        self._describer.load()
        size = (image.width, image.height)
        try:
            return self._describer.describe(Pillow.frombytes("RGB", size, image.rgb))
        except Exception:  # an odd image must cost neither its request nor the plugin
            log.exception("an image of %d x %d pixels cannot be described", *size)
            return UNREAD


def fallback_of(settings: VisionSettings) -> Fallback | None:
    """What the settings ask for. Raises ConfigError where it cannot be had."""
    if settings.fallback == "ocr":
        return Fallback(TextInImage())
    if settings.fallback == "clip":
        return Fallback(Labels(settings))
    return None


def _require(module: str, what: str, extra: str) -> None:
    if find_spec(module) is None:
        raise MissingExtra(what, extra, module)
