"""From which similarity on something is an answer, for models of which nothing is known."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import pytest

from hookline_knowledge.floors import Floors, measured, strong


class Narrow:
    """Vectors that are all near each other, like those of many models, as ``bias`` says."""

    dimensions, max_tokens = 2, 100

    def __init__(self, name: str, bias: float) -> None:
        self.name = name
        self.bias = bias
        self.texts: list[str] = []

    async def embed(self, texts: Sequence[str], **_: Any) -> list[list[float]]:
        self.texts += texts
        angles = [(1 - self.bias) * math.pi * (len(text) % 10) / 9 for text in texts]
        return [[5 * math.cos(angle), 5 * math.sin(angle)] for angle in angles]


async def test_floors_follow_the_scale_of_the_model() -> None:
    wide, narrow = await measured(Narrow("a", 0.5)), await measured(Narrow("b", 0.95))
    assert 0 < wide <= 1 and 0.98 < narrow <= 1
    assert await measured(Narrow("c", 1.0)) == 1.0  # all texts are one: nothing can be told


async def test_a_floor_is_measured_once_and_only_where_nothing_is_known(
    caplog: pytest.LogCaptureFixture,
) -> None:
    floors, model = Floors(None), Narrow("unknown", 0.9)
    with caplog.at_level("INFO"):
        assert await floors.of(model) == await floors.of(model)
    assert len(model.texts) == 40
    assert caplog.text.count("'unknown'") == 1
    known = Narrow("all-MiniLM-L6-v2", 0.9)
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
