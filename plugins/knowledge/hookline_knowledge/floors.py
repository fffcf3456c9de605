"""From which similarity on a passage can be an answer, which differs from model to model."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from hookline import Embedder
from hookline_knowledge.embedders.backend import of_length_one
from hookline_knowledge.unrelated import PASSAGES, QUESTIONS

log = logging.getLogger(__name__)

KNOWN = {"all-MiniLM-L6-v2": 0.25}
"""By embedder. Measured with questions that documents answer, and with others."""
DEVIATIONS = 3.5
"""By how much the floor is above what texts that have nothing in common are alike on average. Of
1,000 such passages the one that is most alike is about 3.2 standard deviations above."""
STRONG = 1 / 3
"""The way from the floor to 1 from which on a passage surely answers."""


class Floors:
    """The floor of the settings, or else that of each model: known, or measured once."""

    def __init__(self, setting: float | None) -> None:
        self._setting = setting
        self._measured: dict[str, float] = {}
        self._measuring = asyncio.Lock()

    async def of(self, embedder: Embedder) -> float:
        """The floor. The first time it may take as long as embedding 40 short texts does."""
        if self._setting is not None:
            return self._setting
        if embedder.name in KNOWN:
            return KNOWN[embedder.name]
        async with self._measuring:
            if embedder.name not in self._measured:
                floor = self._measured[embedder.name] = await measured(embedder)
                log.info(
                    "similarities of the embedder '%s' are taken for answers from %.2f on, by "
                    "texts that have nothing in common; [plugin.knowledge] floor sets another",
                    embedder.name,
                    floor,
                )
        return self._measured[embedder.name]


async def measured(embedder: Embedder) -> float:
    """What no question and passage reach that have nothing in common, but for rare chance.

    At most half way from the most that they reach to 1: a model that only generates text may
    scatter so widely that nothing would be left above.
    """
    asked = _directions(await embedder.embed(QUESTIONS, kind="query"))
    told = _directions(await embedder.embed(PASSAGES))
    similarities = asked @ told.T
    floor, most = similarities.mean() + DEVIATIONS * similarities.std(), similarities.max()
    if floor > (half := (1 + most) / 2):
        log.warning(
            "the embedder '%s' hardly tells texts apart: some that have nothing in common have a "
            "similarity of %.2f; another model will find more",
            embedder.name,
            most,
        )
        floor = half
    return round(float(min(1.0, max(0.0, floor))), 3)


def strong(floor: float) -> float:
    """The similarity from which on a passage surely answers."""
    return floor + (1 - floor) * STRONG


def _directions(vectors: Sequence[Sequence[float]]) -> npt.NDArray[np.float32]:
    """The vectors at length 1; zeros stay zeros."""
    return np.stack([of_length_one(np.asarray(vector, np.float32)) for vector in vectors])
