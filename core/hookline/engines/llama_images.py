"""From the images of prompts to the vectors that the model reads, one slice at a time."""

from __future__ import annotations

import time
from collections import OrderedDict
from concurrent.futures import Future, ThreadPoolExecutor, wait

from hookline.engines.llama_projector import Bitmap, Projector, Vectors
from hookline.engines.spans import Span, Spans
from hookline.images import Image

ENCODED_BYTES = 256 * 2**20
"""Bytes of vectors that are remembered: some 7,000 images of the default model's test projector,
27 of a model of seven billion weights at 576 tokens each."""


class EncodedImages:
    """The vectors of the slices that were used last, up to ``most`` bytes."""

    def __init__(self, most: int = ENCODED_BYTES) -> None:
        self._most = most
        self._bytes = 0
        self._slices: OrderedDict[tuple[str, int], Vectors] = OrderedDict()

    def get(self, span: Span) -> Vectors | None:
        """The vectors of a slice, if they are remembered."""
        found = self._slices.get(span.key)
        if found is not None:
            self._slices.move_to_end(span.key)
        return found

    def put(self, span: Span, vectors: Vectors) -> None:
        """Remembers a slice, and forgets those that were not used for longest."""
        self._slices[span.key] = vectors
        self._bytes += vectors.nbytes
        while self._bytes > self._most:
            _, gone = self._slices.popitem(last=False)
            self._bytes -= gone.nbytes


class Looks:
    """Makes a `Look` for every prompt with images; they share encoder and memory."""

    def __init__(self, projector: Projector) -> None:
        self.projector = projector
        self.encoded = EncodedImages()
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="images")

    def look(self, spans: Spans) -> Look:
        """The way of one prompt through its images."""
        return Look(self, spans)

    def tokenize(self, image: Image) -> Future[Bitmap]:
        """Scales and cuts an image beside the model's own work."""
        return self._pool.submit(self.projector.tokenize, image)

    def close(self) -> None:
        """Waits for what is being scaled, and frees the encoder."""
        self._pool.shutdown(wait=True, cancel_futures=True)
        self.projector.close()


class Look:
    """One prompt's way through its images.

    While one image is read the next is scaled. What is being read is held here, so that nobody
    else's images can push it out of the memory.
    """

    def __init__(self, looks: Looks, spans: Spans) -> None:
        self._looks = looks
        self._spans = spans
        self._bitmaps: dict[str, Future[Bitmap]] = {}
        self._held: tuple[tuple[str, int], Vectors] | None = None

    def vectors(self, span: Span) -> Vectors | None:
        """The vectors of a slice, if they are there; else see `encode`."""
        if self._held is not None and self._held[0] == span.key:
            return self._held[1]
        found = self._looks.encoded.get(span)
        if found is not None:
            self._hold(span, found)
        return found

    def encode(self, span: Span, patience: float) -> float:
        """Encodes a slice and returns how long that took, in seconds; 0 where its image is not
        scaled after ``patience`` seconds. Raises what went wrong with the image."""
        bitmap = self._bitmap(span.image)
        if not wait([bitmap], patience).done:
            return 0.0
        began = time.perf_counter()
        vectors = self._looks.projector.encode(bitmap.result(), span.number)
        self._looks.encoded.put(span, vectors)
        self._hold(span, vectors)
        return time.perf_counter() - began

    def _hold(self, span: Span, vectors: Vectors) -> None:
        self._held = span.key, vectors
        later = [other for other in self._spans if other.start >= span.start]
        unknown = [other for other in later if self._looks.encoded.get(other) is None]
        wanted = unknown[0].image if unknown else None
        self._bitmaps = {
            digest: bitmap
            for digest, bitmap in self._bitmaps.items()
            if wanted is not None and digest == wanted.digest
        }
        if wanted is not None:
            self._bitmap(wanted)

    def _bitmap(self, image: Image) -> Future[Bitmap]:
        if image.digest not in self._bitmaps:
            self._bitmaps[image.digest] = self._looks.tokenize(image)
        return self._bitmaps[image.digest]
