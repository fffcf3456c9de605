"""Image projectors: which are refused and how, and what becomes of an image."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hookline.config import ModelSettings
from hookline.engines.llama_generator import LlamaCppGenerator
from hookline.engines.spans import Slice
from hookline.errors import InvalidRequest, NoModel, StartError
from hookline.images import Image

pytestmark = pytest.mark.model

Picture = Callable[..., Image]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory, tiny: Any) -> Path:
    """A tiny model, its projector, and one that belongs to another model."""
    folder: Path = tmp_path_factory.mktemp("files")
    tiny.text_model(folder / "tiny.gguf", "qwen2vl")
    tiny.projector(folder / "mmproj.gguf", "qwen2vl", out=64)
    tiny.projector(folder / "mmproj-other.gguf", "qwen2vl", out=96)
    (folder / "mmproj-text.gguf").write_text("once upon a time")
    return folder


def loaded(files: Path, mmproj: str | None, beside: str | None = None) -> LlamaCppGenerator:
    settings = ModelSettings(context=128, parallel=1, threads=1)
    settings.mmproj = files / mmproj if mmproj else None
    generator = LlamaCppGenerator(
        files / "tiny.gguf",
        model_id="tiny",
        settings=settings,
        beside=files / beside if beside else None,
    )
    try:
        generator.load(lambda _: None)
    except StartError:
        generator.close()
        raise
    return generator


@pytest.mark.parametrize(
    ("mmproj", "reason"),
    [
        ("missing.gguf", "cannot be read: No such file"),
        ("mmproj-text.gguf", "is not a GGUF file"),
        ("tiny.gguf", "cannot be used: "),
        (
            "mmproj-other.gguf",
            "(its vectors have 96 numbers, those of this model 64)",
        ),
    ],
)
def test_a_projector_that_cannot_be_used_is_refused_in_one_line(
    files: Path, mmproj: str, reason: str
) -> None:
    with pytest.raises(StartError) as caught:
        loaded(files, mmproj)
    message = str(caught.value)
    assert message.startswith(f"[model] mmproj: The image projector {files / mmproj} ")
    assert reason in message
    assert "\n" not in message


def test_one_that_only_lies_beside_the_model_is_left_out_with_a_warning(
    files: Path, picture: Picture, caplog: pytest.LogCaptureFixture
) -> None:
    generator = loaded(files, None, beside="mmproj-other.gguf")
    assert not generator.card.vision
    (warning,) = [record for record in caplog.records if record.levelno >= logging.WARNING]
    assert "Images are off" in warning.getMessage()
    assert "another model" in warning.getMessage()
    with pytest.raises(InvalidRequest, match="cannot see images"):
        generator.layout(picture(1))
    generator.close()


def test_a_projector_whose_images_depend_on_their_place_is_refused(
    files: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Slice, "same_as", lambda self, other: False)
    with pytest.raises(StartError, match="depend on where in the prompt they stand"):
        loaded(files, "mmproj.gguf")


def test_the_one_that_is_set_wins_over_the_one_beside(
    files: Path, picture: Picture, caplog: pytest.LogCaptureFixture
) -> None:
    generator = loaded(files, "mmproj.gguf", beside="mmproj-other.gguf")
    assert generator.card.vision
    assert generator.card.details["mmproj"] == "mmproj.gguf"
    assert not [record for record in caplog.records if record.levelno >= logging.WARNING]
    generator.close()
    with pytest.raises(NoModel):
        generator.layout(picture(1))


def test_what_an_image_becomes_depends_on_its_size(seeing: Any, picture: Picture) -> None:
    small, wide = (seeing.generator.layout(picture(1, *size)) for size in ((56, 56), (168, 56)))
    tokens = [sum(one.tokens for one in layout.slices) for layout in (small, wide)]
    moves = [sum(one.positions for one in layout.slices) for layout in (small, wide)]
    expected = {
        "internvl": ([4, 8], [4, 8]),  # one slice; an overview and one
        "gemma3": ([4, 4], [4, 4]),
        "qwen2vl": ([9, 12], [3, 6]),  # rows times columns; the larger of the two
    }
    assert (tokens, moves) == expected[seeing.kind]
    places = wide.slices[0].places(100)
    if seeing.kind == "qwen2vl":  # time, row, column, and one that is not used
        assert places[:, :7].tolist() == [
            [100] * 7,
            [100] * 6 + [101],
            [100, 101, 102, 103, 104, 105, 100],
            [0] * 7,
        ]
    else:
        assert places.tolist() == list(range(100, 100 + wide.slices[0].tokens))
    assert {one.causal for one in wide.slices} == {seeing.kind != "gemma3"}
    ids = wide.ids(5)
    assert ids.count(-6) == tokens[1]
    assert len(ids) > tokens[1]


@pytest.mark.parametrize(("width", "height"), [(1, 201), (4000, 4)])
def test_an_image_that_is_next_to_a_line_is_refused(seeing: Any, width: int, height: int) -> None:
    with pytest.raises(InvalidRequest, match=f"{width} x {height} pixels is too narrow"):
        seeing.generator.layout(Image(width, height, bytes(width * height * 3)))


@pytest.mark.parametrize(("width", "height"), [(1, 1), (1, 200), (3, 2), (999, 13)])
def test_odd_sizes_are_read(
    seeing: Any, player: Any, picture: Picture, width: int, height: int
) -> None:
    answer = player.play(seeing.job("a", picture(1, width, height), "b", tokens=1))[0]
    assert answer.finish == "length"
