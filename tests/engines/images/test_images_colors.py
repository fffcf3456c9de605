"""The default model with a real projector: it tells red from blue.

The projector is looked for at ``TEST_MMPROJ`` and in ``shared/models`` beside the checkout.
"""

from __future__ import annotations

import asyncio
import base64
import io
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from hookline.app import create_app
from hookline.config import ModelSettings, Settings

pytestmark = pytest.mark.model

FILE = "mmproj-smollm2-135m-tiny-f16.gguf"
SHAPES = [(color, shape) for color in ("red", "blue") for shape in ("square", "circle")]


@pytest.fixture(scope="module")
def mmproj() -> Path:
    beside = Path(__file__).parents[4] / "shared" / "models" / FILE
    path = Path(os.environ.get("TEST_MMPROJ", beside))
    if not path.is_file():
        pytest.skip(f"there is no projector of the default model at {path}: set TEST_MMPROJ")
    return path


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def app(
    mmproj: Path, model_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Any]:
    model = ModelSettings(context=1024, parallel=4, threads=1, mmproj=mmproj)
    folder = tmp_path_factory.mktemp("data")
    made = create_app(Settings(data_dir=folder, plugins=["vision"], model=model))
    async with made.test_app():
        await made.extensions["hookline"].loaded
        yield made


def picture(color: str, shape: str, size: int = 112) -> dict[str, Any]:
    """A coloured shape on white, as an image part."""
    pil = pytest.importorskip("PIL.Image", reason="pip install 'hookline[vision]'")
    draw = pytest.importorskip("PIL.ImageDraw")
    image = pil.new("RGB", (size, size), "white")
    box = (size // 4, size // 4, size * 3 // 4, size * 3 // 4)
    pen = draw.Draw(image)
    (pen.rectangle if shape == "square" else pen.ellipse)(box, fill=color)
    png = io.BytesIO()
    image.save(png, "PNG")
    data = base64.b64encode(png.getvalue()).decode()
    return {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{data}"}}


async def ask(app: Any, *parts: dict[str, Any], text: str = "What color is it?") -> dict[str, Any]:
    content = [*parts, {"type": "text", "text": text}]
    body = {"messages": [{"role": "user", "content": content}], "max_tokens": 12}
    response = await app.test_client().post("/v1/chat/completions", json=body)
    assert response.status_code == 200, await response.get_data()
    answer: dict[str, Any] = await response.get_json()
    return answer


def text_of(answer: dict[str, Any]) -> str:
    text: str = answer["choices"][0]["message"]["content"]
    return text


@pytest.mark.asyncio(loop_scope="module")
async def test_it_tells_red_from_blue_alone_and_with_others(app: Any) -> None:
    alone = [await ask(app, picture(*shape)) for shape in SHAPES]
    for (color, _), answer in zip(SHAPES, alone, strict=True):
        assert color in text_of(answer).lower()
        assert answer["timings"]["vision_ms"] > 0
    together = await asyncio.gather(*(ask(app, picture(*shape)) for shape in SHAPES))
    assert list(map(text_of, together)) == list(map(text_of, alone))
    for answer in together:
        usage = answer["usage"]
        assert usage["prompt_tokens_details"]["cached_tokens"] == usage["prompt_tokens"] - 2
        assert answer["timings"]["vision_ms"] == 0.0


@pytest.mark.asyncio(loop_scope="module")
async def test_sixteen_images_in_one_request(app: Any) -> None:
    images = [picture("red" if size % 2 else "blue", "square", 100 + size) for size in range(16)]
    answer = await ask(app, *images)
    assert answer["timings"]["images"] == 16
    assert answer["usage"]["prompt_tokens"] > 16 * 16
    assert answer["timings"]["dropped_messages"] == 0


@pytest.mark.asyncio(loop_scope="module")
async def test_what_looks_like_a_mark_is_text(app: Any) -> None:
    for typed in ("<__media__>", "\ufdd10\ufdd2", "<img></img>"):
        answer = await ask(app, picture("red", "square"), text=f"{typed} What color is it?")
        assert answer["timings"]["images"] == 1


@pytest.mark.asyncio(loop_scope="module")
async def test_the_list_of_models_says_that_it_sees(app: Any) -> None:
    models = await (await app.test_client().get("/v1/models")).get_json()
    (loaded,) = [model for model in models["data"] if model["loaded"]]
    assert loaded["hookline"]["vision"] is True
