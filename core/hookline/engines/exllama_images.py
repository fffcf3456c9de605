"""Images in prompts of the ExLlama engines: encoded once, then remembered for a while."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from hookline.engines.exllama_backend import FIRST_IMAGE_ID, Embedding
from hookline.errors import InvalidRequest
from hookline.images import Image

Ids = npt.NDArray[np.int64]

REMEMBERED = 64
"""Images whose vectors are kept: some 150 MB at 576 vectors of 2,048 half-precision numbers."""


class Embeddings:
    """The vectors of the images that were used last, by the picture's content.

    A picture that is asked for again gets the same ids, by which the library finds what it has
    read of it before.
    """

    def __init__(self, embed: Callable[[Image], Embedding]) -> None:
        self._embed = embed
        self._known: OrderedDict[str, Embedding] = OrderedDict()

    def get(self, image: Image) -> Embedding:
        """An image's vectors. Raises InvalidRequest where the model cannot take it."""
        found = self._known.get(image.digest)
        if found is None:
            found = self._known[image.digest] = self._embed(image)
        self._known.move_to_end(image.digest)
        if len(self._known) > REMEMBERED:
            self._known.popitem(last=False)
        return found


def ids_in_job(embedding: Embedding, index: int) -> list[int]:
    """What stands in `Job.prompt` for an image: its vectors as ``-1 - index``, text as it is."""
    return [-1 - index if i >= FIRST_IMAGE_ID else i for i in embedding.ids]


def ids_for_library(prompt: Sequence[int], embeddings: Sequence[Embedding]) -> list[int]:
    """A job's prompt with the library's own ids of images. Raises InvalidRequest where an image is
    not there as it has to."""
    ids: Ids = np.asarray(prompt, np.int64)
    if ids.size and ids.min() < -len(embeddings):
        raise InvalidRequest(f"The prompt holds image {-ids.min()} of {len(embeddings)}.")
    whole = ids.copy()
    for index, embedding in enumerate(embeddings):
        own = [i for i in embedding.ids if i >= FIRST_IMAGE_ID]
        places = np.flatnonzero(ids == -1 - index)
        if len(places) != len(own):
            raise InvalidRequest(
                f"The prompt's images cannot be used: image {index} takes {len(own)} tokens, not "
                f"{len(places)}."
            )
        whole[places] = own
    listed: list[int] = whole.tolist()
    return listed
