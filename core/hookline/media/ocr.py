"""The text in an image, read by RapidOCR with the models that it brings along."""

from __future__ import annotations

import io
import threading
from typing import TYPE_CHECKING, Any

from hookline.errors import MissingExtra

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    from PIL import Image

    Pixels = npt.NDArray[np.uint8]


LEAST_SIDE = 32
MOST_UNEVEN = 8
"""Pixels of a side, and the most times that the other may be as long. RapidOCR enlarges an image
until its shorter side has 736 pixels: a line of 1 x 2048 would take it minutes, or break it."""


class TextReader:
    """Reads printed text. Loads its models when it is made; may be shared by threads.

    ``threads`` are the cores that one reading may use. Raises MissingExtra where the library is
    not installed.
    """

    def __init__(self, threads: int = 1) -> None:
        self._lock = threading.Lock()
        self._engine = _engine(threads)

    def read(self, image: Image.Image | bytes) -> str:
        """The lines of text in reading order, one a line; empty where there is none.

        ``image`` as bytes is an encoded image that is trusted: nothing limits what decoding it
        costs. Takes seconds for a page.
        """
        return "\n".join(filter(None, map(self.read_line, self.find(image))))

    def find(self, image: Image.Image | bytes) -> list[Pixels]:
        """The lines of text in reading order, each cut out of the image. Takes seconds."""
        import numpy as np
        from PIL import Image
        from rapidocr.main import RapidOCRError

        if isinstance(image, bytes):
            image = Image.open(io.BytesIO(image))
        # RapidOCR takes arrays as OpenCV has them: blue first.
        pixels = np.asarray(_padded(image.convert("RGB")))[:, :, ::-1]
        with self._lock:
            try:
                found: list[Pixels]
                found, _ = self._engine.detect_and_crop(*self._engine.preprocess_img(pixels))
            except RapidOCRError:  # there is no text
                return []
        return found

    def read_line(self, line: Pixels) -> str:
        """The text of a line that `find` found; empty where it cannot be read.

        One at a time takes a third less time and memory than RapidOCR's six at once, which it
        fills up to the width of the longest.
        """
        with self._lock:
            upright, _ = self._engine.cls_and_rotate([line])
            read = self._engine.recognize_txt(upright)
        text: str = read.txts[0].strip()
        return text if read.scores[0] >= self._engine.text_score else ""


def _padded(image: Image.Image) -> Image.Image:
    """The image with white beside or below it, where a side is too short for RapidOCR."""
    from PIL import ImageOps

    least = max(LEAST_SIDE, -(-max(image.size) // MOST_UNEVEN))
    right, below = (max(least - side, 0) for side in image.size)
    return ImageOps.expand(image, (0, 0, right, below), "white") if right or below else image


def _engine(threads: int) -> Any:
    try:
        from rapidocr import RapidOCR
    except ImportError as error:
        raise MissingExtra("Reading the text in images", "ocr", error.name) from error
    return RapidOCR(
        params={
            "Global.log_level": "error",
            "EngineConfig.onnxruntime.intra_op_num_threads": threads,
            "EngineConfig.onnxruntime.inter_op_num_threads": 1,
        }
    )
