"""Pictures in collections; with a small CLIP of random weights, which finds only what is equal."""

from __future__ import annotations

import base64
import io
import warnings
from pathlib import Path
from typing import Any

import openai
import pytest
from PIL import Image

from hookline_knowledge.parsing import Unreadable
from hookline_knowledge.pictures.decoding import decoded
from hookline_knowledge.pictures.settings import PictureSettings

ARCHITECTURE = "ViT-S-32-alt"


def picture(colour: str, form: str = "PNG", side: int = 64) -> bytes:
    """A square in one colour with another in its corner."""
    image = Image.new("RGB", (side, side), colour)
    image.paste("white", (0, 0, side // 3, side // 2))
    image.save(file := io.BytesIO(), form)
    return file.getvalue()


def url(data: bytes) -> str:
    return f"data:image/png;base64,{base64.b64encode(data).decode()}"


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("open_clip", reason="needs hookline[clip]")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import open_clip
        import torch

    torch.manual_seed(3)
    file = tmp_path_factory.mktemp("clip") / "random.pt"
    torch.save(open_clip.create_model(ARCHITECTURE).state_dict(), file)
    return file


async def test_pictures_are_found_by_text_and_by_pictures(reader: Any, checkpoint: Path) -> None:
    looks = {"checkpoint": str(checkpoint), "architecture": ARCHITECTURE, "floor": 0.0}
    async with reader(pictures=looks, parsing={"ocr": False}) as at:
        stores = at.openai.vector_stores
        store = (await stores.create(name="Photos")).id
        for colour in ("red", "blue", "green"):
            added = await stores.files.upload_and_poll(
                vector_store_id=store,
                file=(f"{colour}.png", picture(colour)),
                poll_interval_ms=20,
            )
            assert added.status == "completed", added.last_error
        broken = await stores.files.upload_and_poll(
            vector_store_id=store, file=("b.png", picture("red")[:90]), poll_interval_ms=20
        )
        assert broken.status == "failed" and "picture" in broken.last_error.message.lower()

        alike = (await stores.search(store, query=url(picture("blue", "JPEG")))).data
        assert alike[0].filename == "blue.png" and alike[0].score > 0.9
        assert alike[0].content[0].model_extra == {"location": "picture"}
        named = (await stores.search(store, query="green")).data
        assert named[0].filename == "green.png"  # by its name; random weights know no colours
        with pytest.raises(openai.BadRequestError, match="picture"):
            await stores.search(store, query="data:image/png;base64,AAAA")

        content = [
            {"type": "text", "text": "What is this?"},
            {"type": "image_url", "image_url": {"url": url(picture("red"))}},
        ]
        response = await at.server.chat(content, knowledge="Photos")
        # No plugin looks at pictures for the answer itself: what was found is no part of that.
        assert response.status_code == 400 and "vision" in response.json()["error"]["message"]

        await at.openai.files.delete(alike[0].file_id)
        left = (await stores.search(store, query=url(picture("blue")))).data
        assert "blue.png" not in [result.filename for result in left]


async def test_without_a_model_for_pictures(reader: Any) -> None:
    async with reader(parsing={"ocr": False}) as at:
        await at.collection("Notes", a="some text")
        with pytest.raises(openai.BadRequestError, match="checkpoint"):
            await at.openai.vector_stores.search("Notes", query=url(picture("red")))
        file = await at.file(picture("red"), "red.png")
        failed = await at.openai.vector_stores.files.create_and_poll(
            file, vector_store_id="Notes", poll_interval_ms=20
        )
        assert failed.status == "failed" and failed.last_error.message


async def test_a_checkpoint_that_is_not_there(reader: Any, tmp_path: Path) -> None:
    pytest.importorskip("open_clip", reason="needs hookline[clip]")
    async with reader(pictures={"checkpoint": str(tmp_path / "none.pt")}) as at:
        file = await at.file(picture("red"), "red.png")
        store = await at.openai.vector_stores.create(name="n")
        failed = await at.openai.vector_stores.files.create_and_poll(
            file, vector_store_id=store.id, poll_interval_ms=20
        )
        assert failed.last_error.code == "server_error" and "none.pt" in failed.last_error.message


async def test_pixels_come_from_a_process() -> None:
    limits = PictureSettings(megapixels=1)
    for form in ("PNG", "JPEG", "GIF", "BMP", "TIFF", "WEBP"):
        image = await decoded(picture("red", form, 700), limits)
        assert image.size == (512, 512) and image.mode == "RGB"
    for data, word in (
        (b"", "cannot be read"),
        (picture("red")[:60], "cannot be read"),
        (picture("red", side=1100), "1 million"),
    ):
        with pytest.raises(Unreadable, match=word):
            await decoded(data, limits)
    with pytest.raises(Unreadable, match="longer"):
        await decoded(picture("red"), PictureSettings(seconds=0.001))
