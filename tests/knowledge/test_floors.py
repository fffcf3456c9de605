"""From which similarity on something is an answer, for models of which nothing is known."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from hookline import Usage
from hookline_knowledge.floors import Floors, measured, strong


class Narrow:
    """A vector of its own for each text, and ``bias`` of one that all have in common, as many
    models have it; with ``scatter`` some have more of that than others."""

    dimensions, max_tokens = 64, 100

    def __init__(self, name: str, bias: float, scatter: float = 0) -> None:
        self.name = name
        self.bias = bias
        self.scatter = scatter
        self.texts: list[str] = []

    def count(self, text: str) -> int:
        return len(text.split())

    async def embed(
        self, texts: Sequence[str], *, kind: str = "document", usage: Usage | None = None
    ) -> list[list[float]]:
        self.texts += texts
        vectors = []
        for text in texts:
            own = np.random.default_rng(zlib.crc32(text.encode())).normal(0, 1, 64)
            own[0] += 8 * (self.bias + self.scatter * (len(text) % 3))
            vectors.append(own.tolist())
        return vectors


async def test_floors_follow_the_scale_of_the_model(caplog: pytest.LogCaptureFixture) -> None:
    floors = [await measured(Narrow("a", bias)) for bias in (0, 1, 3)]
    assert floors == sorted(floors) and 0.2 < floors[0] < 0.6 and 0.9 < floors[2] < 1
    assert not caplog.records


async def test_a_model_that_tells_little_apart_is_warned_of(
    caplog: pytest.LogCaptureFixture,
) -> None:
    assert 0.9 < await measured(Narrow("scattered", 0, scatter=4)) < 1
    assert "'scattered' hardly tells texts apart" in caplog.text


async def test_a_floor_is_measured_once_and_only_where_nothing_is_known(
    caplog: pytest.LogCaptureFixture,
) -> None:
    floors, model = Floors(None), Narrow("unknown", 1)
    with caplog.at_level("INFO"):
        assert await floors.of(model) == await floors.of(model)
    assert len(model.texts) == 40
    assert caplog.text.count("'unknown'") == 1
    known = Narrow("all-MiniLM-L6-v2", 1)
    assert await floors.of(known) == 0.25 and known.texts == []
    assert await Floors(0.6).of(model) == 0.6 and len(model.texts) == 40


def test_what_is_strong_lies_between_the_floor_and_1() -> None:
    assert strong(0.25) == pytest.approx(0.5)
    assert 0.86 < strong(0.86) < 1
    assert strong(1.0) == 1.0


async def test_an_unknown_model_gives_no_passages_of_something_else(reader: Any) -> None:
    async with reader(floor=None) as at:
        await at.collection("Notes", leave="Annual leave is thirty days a year.")
        right = await at.server.chat("How many days of annual leave a year?", knowledge=True)
        assert [source["document"] for source in right.json()["sources"]] == ["leave.txt"]
        wrong = await at.server.chat("Is there a dog?", knowledge=True)
        assert wrong.json()["sources"] == []
