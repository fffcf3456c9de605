"""llama.cpp's image encoder: an image projector (mmproj) beside a model.

The order of calls is that of mtmd, llama.cpp's library for images: a bitmap is *tokenized* (scaled
and cut as the encoder wants it), then every slice is *encoded* to one vector a token. Its helpers
that do all at once are not used: they would hold up everybody else.
"""

from __future__ import annotations

import ctypes
import logging
import re
import threading
import weakref
from collections import OrderedDict
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from hookline.engines.llama_library import vision_library
from hookline.engines.llama_model import LlamaModel, check_magic
from hookline.engines.spans import Slice
from hookline.errors import InvalidRequest, NoModel, StartError
from hookline.images import Image

log = logging.getLogger(__name__)

Vectors = npt.NDArray[np.float32]

_IMAGE = 1  # mtmd_input_chunk_type
_LAYOUTS = 256
_PROBES = ((64, 64), (512, 512), (4096, 4096), (4096, 1024), (1024, 4096))
"""Sizes of which one takes the most tokens a slice that a projector has."""

MOST_UNEVEN = 200
"""How many times longer than the other a side may be; encoders divide by what is left of it."""


@dataclass(frozen=True, slots=True)
class Layout:
    """What an image of some size becomes: ids of text around and between, and slices."""

    parts: tuple[Sequence[int] | Slice, ...]

    @property
    def slices(self) -> list[Slice]:
        """The slices, in order."""
        return [part for part in self.parts if isinstance(part, Slice)]

    def ids(self, index: int) -> list[int]:
        """What stands in a prompt for the image ``index`` of its job."""
        ids: list[int] = []
        for part in self.parts:
            ids += [-1 - index] * part.tokens if isinstance(part, Slice) else part
        return ids


class Bitmap:
    """An image as mtmd has scaled and cut it; freed when nobody holds it any more."""

    def __init__(self, api: Any) -> None:
        self._api = api
        self.handle = api.mtmd_input_chunks_init()
        weakref.finalize(self, api.mtmd_input_chunks_free, self.handle)

    def chunks(self) -> list[Any]:
        """The C pointers of its texts and slices."""
        count = self._api.mtmd_input_chunks_size(self.handle)
        return [self._api.mtmd_input_chunks_get(self.handle, i) for i in range(count)]


class Projector:
    """An image encoder in memory. Raises StartError where the file cannot be used with the model.

    `layout` and `tokenize` may be called from any thread, `encode` from one at a time.
    """

    def __init__(self, path: Path, model: LlamaModel, *, threads: int, gpu: bool) -> None:
        self.path = path
        check_magic(path, "image projector")
        self._api = vision_library()
        self._width = int(model.api.llama_model_n_embd_inp(model.handle))
        self._lock = threading.Lock()
        self._layouts: OrderedDict[tuple[int, int], Layout] = OrderedDict()
        self._handle = self._load(model, threads, gpu)
        self._mrope = bool(self._api.mtmd_decode_use_mrope(self._handle))
        self._refuse_what_depends_on_the_place()
        self.at_once = self._most_at_once()

    def _load(self, model: LlamaModel, threads: int, gpu: bool) -> Any:
        params = self._api.mtmd_context_params_default()
        params.use_gpu = gpu
        params.print_timings = False
        params.n_threads = threads
        params.flash_attn_type = 0
        with model.log.kept_quiet():
            handle = self._api.mtmd_init_from_file(str(self.path).encode(), model.handle, params)
        if not handle:
            reason = _reason(model.log.first_error())
            raise StartError(f"The image projector {self.path} cannot be used: {reason}")
        if not self._api.mtmd_support_vision(handle):
            self._api.mtmd_free(handle)
            raise StartError(f"The projector {self.path} is not for images.")
        return handle

    def _refuse_what_depends_on_the_place(self) -> None:
        """Refuses encoders that number images (HunyuanVL) or pad them by where they begin
        (DeepSeek V4): here an image is the same wherever it stands."""
        size = _PROBES[0]
        again = self._parts(self._tokenized("a", (*size, None), (*size, None)))
        moved = [part for part in again if isinstance(part, Slice)]
        alone = self.layout(*size).slices * 2
        if len(moved) != len(alone) or not all(map(Slice.same_as, moved, alone)):
            self.close()
            raise StartError(
                f"The image projector {self.path} cannot be used: its images depend on where in "
                "the prompt they stand, which is not supported."
            )

    def _most_at_once(self) -> int:
        """The most vectors of a slice that must be read in one pass."""
        slices = [slice_ for size in _PROBES for slice_ in self.layout(*size).slices]
        return max((slice_.tokens for slice_ in slices if not slice_.causal), default=0)

    def layout(self, width: int, height: int) -> Layout:
        """What an image of this size becomes. Raises InvalidRequest where it cannot be encoded."""
        with self._lock:
            if self._handle is None:
                raise NoModel("The model is being loaded again. Try again soon.", retry_after=2)
            known = self._layouts.get((width, height))
            if known is None:
                known = self._measured(width, height)
                self._layouts[width, height] = known
                if len(self._layouts) > _LAYOUTS:
                    self._layouts.popitem(last=False)
        return known

    def _measured(self, width: int, height: int) -> Layout:
        """Tokenizes a bitmap without pixels, which costs nothing."""
        if max(width, height) > MOST_UNEVEN * min(width, height):
            raise InvalidRequest(
                f"An image of {width} x {height} pixels is too narrow: one side may be at most "
                f"{MOST_UNEVEN} times the other.",
                param="messages",
            )
        return Layout(tuple(self._parts(self._tokenized((width, height, None)))))

    def _parts(self, bitmap: Bitmap) -> list[Sequence[int] | Slice]:
        return [self._part(chunk) for chunk in bitmap.chunks()]

    def _part(self, chunk: Any) -> Sequence[int] | Slice:
        count = int(self._api.mtmd_input_chunk_get_n_tokens(chunk))
        if not self._is_image(chunk):
            ids = self._api.mtmd_input_chunk_get_tokens_text(chunk, ctypes.byref(ctypes.c_size_t()))
            return tuple(ids[:count])
        offsets = self._places(chunk, count, 0)
        return Slice(
            tokens=count,
            positions=int(self._api.mtmd_input_chunk_get_n_pos(chunk)),
            causal=not self._api.mtmd_decode_use_non_causal(self._handle, chunk),
            offsets=offsets,
            slopes=self._places(chunk, count, 1) - offsets,
        )

    def _places(self, chunk: Any, count: int, start: int) -> npt.NDArray[np.int32]:
        """Positions of a slice's vectors; under M-RoPE in the order time, row, column, free."""
        if not self._mrope:
            return np.arange(start, start + count, dtype=np.int32)
        image = self._api.mtmd_input_chunk_get_tokens_image(chunk)
        place = self._api.mtmd_image_tokens_get_decoder_pos
        found = [place(image, start, i) for i in range(count)]
        return np.array([(at.t, at.y, at.x, at.z) for at in found], np.int32).T

    def tokenize(self, image: Image) -> Bitmap:
        """Scales and cuts an image, which takes a while. Raises InvalidRequest where it fails."""
        return self._tokenized((image.width, image.height, image.rgb))

    def _tokenized(self, *parts: str | tuple[int, int, bytes | None]) -> Bitmap:
        """Tokenizes texts and images, those without pixels too."""
        api = self._api
        with ExitStack() as kept:
            rows = [ctypes.pointer(self._row(part, kept)) for part in parts]
            array = (ctypes.POINTER(api.mtmd_input_part) * len(rows))(*rows)
            bitmap = Bitmap(api)
            status = api.mtmd_tokenize_from_parts(
                self._handle, bitmap.handle, array, len(rows), False
            )
        if status:
            raise InvalidRequest("The model cannot take this image.", param="messages")
        return bitmap

    def _row(self, part: str | tuple[int, int, bytes | None], kept: ExitStack) -> Any:
        row = self._api.mtmd_input_part()
        if isinstance(part, str):
            text = self._api.mtmd_input_text(part.encode(), len(part.encode()), False, False)
            row.text = ctypes.pointer(text)
        else:
            width, height, rgb = part
            pixels = ctypes.cast(ctypes.c_char_p(rgb), ctypes.POINTER(ctypes.c_uint8))
            row.bitmap = self._api.mtmd_bitmap_init(width, height, pixels)
            kept.callback(self._api.mtmd_bitmap_free, row.bitmap)
        return row

    def encode(self, bitmap: Bitmap, number: int) -> Vectors:
        """The vectors of slice ``number``, of the shape ``(tokens, width of the model)``."""
        images = [chunk for chunk in bitmap.chunks() if self._is_image(chunk)]
        chunk = images[number]
        if status := self._api.mtmd_encode_chunk(self._handle, chunk):
            raise RuntimeError(f"mtmd_encode_chunk returned {status}")
        count = int(self._api.mtmd_input_chunk_get_n_tokens(chunk))
        pointer = self._api.mtmd_get_output_embd(self._handle)
        return np.ctypeslib.as_array(pointer, shape=(count, self._width)).copy()

    def _is_image(self, chunk: Any) -> bool:
        return bool(self._api.mtmd_input_chunk_get_type(chunk) == _IMAGE)

    def close(self) -> None:
        """Frees the encoder. Nothing may be tokenized or encoded meanwhile."""
        with self._lock:
            if self._handle is not None:
                self._api.mtmd_free(self._handle)
                self._handle = None


def _reason(error: str) -> str:
    """llama.cpp's words in ours, where they are about the wrong file."""
    widths = re.search(r"text model \(n_embd = (\d+)\) and mmproj \(n_embd = (\d+)\)", error)
    if widths:
        return (
            f"it belongs to another model (its vectors have {widths[2]} numbers, those of this "
            f"model {widths[1]})."
        )
    return error.partition("error: ")[2] or error or "llama.cpp does not say why."
