"""Models that cannot see are told what is in an image: its text, or labels that fit it."""

from __future__ import annotations

import asyncio
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
from hookline_vision.fallback import NO_TURN, Fallback, fallback_of
from hookline_vision.told import Told

Make = Callable[..., dict[str, Any]]
needs_ocr = pytest.mark.skipif(find_spec("rapidocr") is None, reason="needs hookline[ocr]")
needs_clip = pytest.mark.skipif(find_spec("open_clip") is None, reason="needs hookline[clip]")


class Counting:
    """Describes an image by its size, and counts how often it is asked; ``missing`` of it is what
    a test says."""

    asked = 0
    missing = ""
    seconds = 0.0

    def __init__(self, memory_mb: int = 0) -> None:
        self.memory_mb = memory_mb

    async def load(self) -> None:
        """Nothing to load."""

    async def close(self) -> None:
        """Nothing to end."""

    async def describe(self, image: Pixels, seconds: float) -> Told:
        self.asked += 1
        self.seconds = seconds
        await asyncio.sleep(0)
        return Told(f"{image.width} wide", self.missing)


def later(seconds: float = 100) -> float:
    return asyncio.get_running_loop().time() + seconds


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
    fallback = Fallback(describer, 30)
    image = Pixels(2, 1, b"\0" * 6)
    for _ in range(3):
        told = await fallback.describe(image, later(), lambda: reports.append(1))
        assert told == Told("2 wide")
    assert describer.asked == len(reports) == 1
    assert describer.seconds == 30
    told = await fallback.describe(Pixels(1, 1, b"\0" * 3), later(), lambda: None)
    assert told.text == "1 wide"


async def test_one_image_of_several_requests_is_described_once() -> None:
    describer = Counting()
    fallback, image = Fallback(describer, 30), Pixels(2, 1, b"\0" * 6)
    asked = [fallback.describe(image, later(), lambda: None) for _ in range(3)]
    assert await asyncio.gather(*asked) == [Told("2 wide")] * 3
    assert describer.asked == 1


async def test_a_request_waits_no_longer_than_it_can() -> None:
    describer = Counting()
    fallback, image = Fallback(describer, 30), Pixels(2, 1, b"\0" * 6)
    await fallback._turn.acquire()
    assert await fallback.describe(image, later(0.01), lambda: None) == NO_TURN
    fallback._turn.release()
    assert await fallback.describe(image, later(-1), lambda: None) == NO_TURN
    await fallback.describe(image, later(20), lambda: None)
    assert 0 < describer.seconds <= 20
    await fallback.describe(image, later(), lambda: None)
    assert describer.asked == 2, "what had less time than others is tried again"


def test_the_client_is_told_what_is_missing(
    server: LocalServer, monkeypatch: pytest.MonkeyPatch, picture: Make
) -> None:
    monkeypatch.setattr(module, "TextInImage", Counting)
    monkeypatch.setattr(Counting, "missing", "Only its first line was read.")
    server.use("vision", fallback="ocr")
    content = [{"type": "text", "text": "first "}, picture(Image.new("RGB", (30, 9)))]
    for _ in range(2):
        answer = server.chat(content)
        (warning,) = answer.body["warnings"]
        assert warning == {
            "plugin": "vision",
            "hook": "transform",
            "message": "The image in messages[0].content[1]: Only its first line was read.",
        }


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
    monkeypatch.setattr(
        "hookline_vision.told.find_spec", lambda name: None if name == missing else object()
    )
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
