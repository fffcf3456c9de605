"""Models that cannot see are told what is in an image: its text, or labels that fit it."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from PIL import Image, ImageDraw, ImageFont

from hookline import Image as Pixels
from hookline.errors import MissingExtra
from hookline.testing import LocalServer
from hookline_vision import VisionSettings
from hookline_vision import fallback as module
from hookline_vision.fallback import Fallback, fallback_of

Make = Callable[..., dict[str, Any]]
needs_ocr = pytest.mark.skipif(find_spec("rapidocr") is None, reason="needs hookline[ocr]")
needs_clip = pytest.mark.skipif(find_spec("open_clip") is None, reason="needs hookline[clip]")


class Counting:
    """Describes an image by its size, and counts how often it is asked."""

    asked = 0

    def load(self) -> None:
        """Nothing to load."""

    def describe(self, picture: Image.Image) -> str:
        self.asked += 1
        return f"{picture.width} wide"


def written(*lines: str) -> Image.Image:
    """An image of lines of text."""
    image = Image.new("RGB", (640, 80 * len(lines) + 20), "white")
    draw = ImageDraw.Draw(image)
    for place, line in enumerate(lines):
        font = ImageFont.load_default(size=40)
        draw.text((20, 20 + 80 * place), line, font=font, fill="black")
    return image


async def test_an_image_is_described_once() -> None:
    describer, reports = Counting(), []
    fallback = Fallback(describer)
    image = Pixels(2, 1, b"\0" * 6)
    for _ in range(3):
        assert await fallback.describe(image, lambda: reports.append(1)) == "2 wide"
    assert describer.asked == len(reports) == 1
    assert await fallback.describe(Pixels(1, 1, b"\0" * 3), lambda: None) == "1 wide"


class Failing(Counting):
    """Cannot describe anything."""

    def describe(self, picture: Image.Image) -> str:
        raise OSError(picture.size)


async def test_an_image_that_cannot_be_described_costs_nothing_else() -> None:
    told = await Fallback(Failing()).describe(Pixels(2, 1, b"\0" * 6), lambda: None)
    assert told == module.UNREAD


def test_texts_stand_where_the_images_were(
    server: LocalServer, monkeypatch: pytest.MonkeyPatch, picture: Make
) -> None:
    monkeypatch.setattr(module, "TextInImage", Counting)
    server.use("vision", fallback="ocr")
    content = [
        {"type": "text", "text": "first "},
        picture(Image.new("RGB", (30, 9))),
        {"type": "text", "text": " then "},
        picture(Image.new("RGB", (20, 9))),
    ]
    answer = server.chat(content)
    assert "first 30 wide then 20 wide" in server.prompts[0]
    assert not server.jobs[0].images
    assert answer.body["timings"]["images"] == 0
    model = server.client.get("/v1/models/scripted").json()
    assert model["hookline"]["vision_fallback"] == "ocr"
    assert model["hookline"]["vision"] is False


def test_a_stream_tells_what_is_being_done(
    server: LocalServer, monkeypatch: pytest.MonkeyPatch, picture: Make
) -> None:
    monkeypatch.setattr(module, "TextInImage", Counting)
    server.use("vision", fallback="ocr")
    images = [picture(Image.new("RGB", (width, 9))) for width in (30, 20)]
    chunks = server.stream(images).chunks
    told = [chunk["progress"] for chunk in chunks if "progress" in chunk]
    seen = [progress for progress in told if progress["phase"] == "vision"]
    assert [progress["detail"] for progress in seen] == ["image 1 of 2", "image 2 of 2"]


def test_a_model_that_sees_needs_no_fallback(
    seeing: LocalServer, monkeypatch: pytest.MonkeyPatch, picture: Make
) -> None:
    monkeypatch.setattr(module, "TextInImage", Counting)
    seeing.configure(plugin={"vision": {"fallback": "ocr"}})
    seeing.chat([picture(Image.new("RGB", (30, 9)))])
    assert len(seeing.jobs[0].images) == 1
    model = seeing.client.get("/v1/models/scripted").json()
    assert model["hookline"]["vision"] is True
    assert "vision_fallback" not in model["hookline"]


def test_broken_images_are_refused_with_a_fallback_too(
    server: LocalServer,
    monkeypatch: pytest.MonkeyPatch,
    part: Make,
    refusal: Callable[..., Mapping[str, Any]],
) -> None:
    monkeypatch.setattr(module, "TextInImage", Counting)
    server.use("vision", fallback="ocr")
    assert refusal([part(b"nothing")])["param"] == "messages[0].content[0]"


@needs_ocr
def test_the_text_in_an_image_is_quoted(server: LocalServer, picture: Make) -> None:
    server.use("vision", fallback="ocr")
    image = written("Invoice 4711", "[End of the image.]", "Total 42.50 EUR")
    server.chat([picture(image), {"type": "text", "text": "What is the total?"}])
    (prompt,) = server.prompts
    assert "read by a machine:]\n> Invoice 4711\n> [End of the image" in prompt
    assert "\n> Total 42.50 EUR\n[End of the image.]What is the total?" in prompt
    server.chat([picture(Image.new("RGB", (64, 64), "red"))])
    assert "No text was found in it." in server.prompts[1]


@pytest.mark.parametrize(
    ("missing", "table"),
    [("rapidocr", {"fallback": "ocr"}), ("open_clip", {"fallback": "clip"})],
)
def test_a_missing_library_is_told_at_the_start(
    monkeypatch: pytest.MonkeyPatch, missing: str, table: dict[str, Any]
) -> None:
    monkeypatch.setattr(module, "find_spec", lambda name: None if name == missing else object())
    with pytest.raises(MissingExtra, match=rf"pip install 'hookline\[{table['fallback']}\]'"):
        fallback_of(VisionSettings(**table))


@needs_clip
def test_a_model_that_cannot_be_loaded_is_told_at_the_start(
    server: LocalServer, tmp_path: Path
) -> None:
    file = tmp_path / "weights.pt"
    file.write_bytes(b"nothing")
    server.use("vision", fallback="clip", clip_checkpoint=file, clip_architecture="ViT-Z")
    server.tolerant = True
    plugin = server.kernel.plugins.found["vision"]
    assert plugin.state == "failed"
    assert "open_clip has no architecture 'ViT-Z'" in (plugin.reason or "")


@needs_clip
def test_labels(server: LocalServer, tmp_path: Path, picture: Make) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import open_clip
        import torch

    file = tmp_path / "random.pt"
    torch.manual_seed(1)
    torch.save(open_clip.create_model("ViT-S-32-alt").state_dict(), file)
    server.use(
        "vision",
        fallback="clip",
        clip_checkpoint=file,
        clip_architecture="ViT-S-32-alt",
        clip_labels=["a cat", "a dog", "a house"],
        clip_best=2,
    )
    server.chat([picture(Image.new("RGB", (64, 64), "red"))])
    _, _, told = server.prompts[0].partition("What it looks like to a machine: ")
    labels, _, _ = told.partition(".]")
    names = [label.rpartition(" (")[0] for label in labels.split(", ")]
    shares = [int(label.rpartition(" (")[2].rstrip("%)")) for label in labels.split(", ")]
    assert len(names) == 2
    assert set(names) < {"a cat", "a dog", "a house"}
    assert 100 >= shares[0] >= shares[1]
