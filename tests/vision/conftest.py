"""What the tests of vision share: images as clients send them, and a model that can see."""

from __future__ import annotations

import base64
import io
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from PIL import Image

from hookline.testing import LocalServer, Refused

MEDIA_TYPES = {
    "PNG": "image/png",
    "JPEG": "image/jpeg",
    "WEBP": "image/webp",
    "GIF": "image/gif",
    "BMP": "image/bmp",
    "TIFF": "image/tiff",
}


@pytest.fixture
def encoded() -> Callable[..., bytes]:
    """``encoded(image, "JPEG")``: the image as a file."""

    def encode(image: Image.Image, form: str = "PNG", **options: Any) -> bytes:
        buffer = io.BytesIO()
        image.save(buffer, form, **options)
        return buffer.getvalue()

    return encode


@pytest.fixture
def part() -> Callable[..., dict[str, Any]]:
    """``part(data, "image/png")``: a file as an image part of a message."""

    def make(data: bytes, media_type: str = "image/png", **fields: Any) -> dict[str, Any]:
        url = f"data:{media_type};base64,{base64.b64encode(data).decode()}"
        return {"type": "image_url", "image_url": {"url": url, **fields}}

    return make


@pytest.fixture
def picture(
    encoded: Callable[..., bytes], part: Callable[..., dict[str, Any]]
) -> Callable[..., dict[str, Any]]:
    """``picture(image, "JPEG", detail="low")``: pixels as an image part of a message."""

    def make(image: Image.Image, form: str = "PNG", **fields: Any) -> dict[str, Any]:
        return part(encoded(image, form), MEDIA_TYPES[form], **fields)

    return make


@pytest.fixture
def refusal(server: LocalServer) -> Callable[..., Mapping[str, Any]]:
    """``refusal(content)``: the error that the server answers with status 400."""

    def ask(content: Any, **fields: Any) -> Mapping[str, Any]:
        with pytest.raises(Refused) as raised:
            server.chat(content, **fields)
        assert raised.value.status == 400
        return raised.value.error

    return ask


@pytest.fixture
def seeing(server: LocalServer) -> LocalServer:
    """A server with the plugin and a model that can see; may still be configured."""
    server.use("vision")
    server.engine(vision=True)
    return server
