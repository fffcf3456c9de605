"""Text and vectors of images; skipped where their extras are not installed."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageDraw, ImageFont

from hookline.errors import ConfigError, MissingExtra
from hookline.media.clip import Clip
from hookline.media.ocr import TextReader, _padded

ARCHITECTURE = "ViT-S-32-alt"


@pytest.fixture(scope="module")
def clip(tmp_path_factory: pytest.TempPathFactory) -> Clip:
    """A small CLIP with random weights."""
    pytest.importorskip("open_clip", reason="needs hookline[clip]")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import open_clip
        import torch

    torch.manual_seed(3)
    file = tmp_path_factory.mktemp("clip") / "random.pt"
    torch.save(open_clip.create_model(ARCHITECTURE).state_dict(), file)
    return Clip(file, ARCHITECTURE)


@pytest.mark.parametrize("size", [(1, 1), (1, 2048), (2048, 1), (20, 2048), (300, 200)])
def test_what_is_narrow_gets_white_beside_it(size: tuple[int, int]) -> None:
    padded = _padded(Image.new("RGB", size, "red"))
    assert min(padded.size) >= max(32, max(padded.size) / 8)
    assert padded.getpixel((0, 0)) == (255, 0, 0)
    assert (padded.size == size) == (size == (300, 200))


def test_vectors_have_length_one(clip: Clip) -> None:
    images = [Image.new("RGB", (50, 30), colour) for colour in ("red", "blue")]
    for vectors in (clip.embed_images(images), clip.embed_texts(["red", "blue"])):
        assert vectors.shape == (2, 256)
        assert vectors.dtype == np.float32
        assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
    assert clip.embed_texts([]).shape == (0, 256)
    assert clip.scale > 1


def test_vectors_do_not_depend_on_the_others(clip: Clip) -> None:
    texts = [f"text number {i}" for i in range(17)]  # more than one batch
    together = clip.embed_texts(texts)
    for place in (0, 16):
        assert np.allclose(together[place], clip.embed_texts([texts[place]])[0], atol=1e-5)


def test_checkpoints_that_cannot_be_used(tmp_path: Path) -> None:
    pytest.importorskip("open_clip", reason="needs hookline[clip]")
    with pytest.raises(ConfigError, match="there is no checkpoint"):
        Clip(tmp_path / "none.pt", ARCHITECTURE)
    (tmp_path / "empty.pt").write_bytes(b"")
    with pytest.raises(ConfigError, match="holds no weights"):
        Clip(tmp_path / "empty.pt", ARCHITECTURE)
    with pytest.raises(ConfigError, match="no architecture 'ViT-Z'"):
        Clip(tmp_path / "empty.pt", "ViT-Z")
    with pytest.raises(ConfigError, match="would have to be fetched"):
        Clip(tmp_path / "empty.pt", "roberta-ViT-B-32")


def test_text_is_read_in_order() -> None:
    pytest.importorskip("rapidocr", reason="needs hookline[ocr]")
    image = Image.new("RGB", (420, 160), "white")
    draw = ImageDraw.Draw(image)
    for place, line in enumerate(("Hookline", "Total 42.50")):
        font = ImageFont.load_default(size=40)
        draw.text((20, 15 + 75 * place), line, font=font, fill="black")
    reader = TextReader()
    assert reader.read(image) == "Hookline\nTotal 42.50"
    assert reader.read(Image.new("RGB", (64, 64), "red")) == ""


def test_what_to_install_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "rapidocr", None)
    monkeypatch.setitem(sys.modules, "open_clip", None)
    with pytest.raises(MissingExtra, match=r"pip install 'hookline\[ocr\]'"):
        TextReader()
    with pytest.raises(MissingExtra, match=r"pip install 'hookline\[clip\]'"):
        Clip(tmp_path / "none.pt", ARCHITECTURE)
