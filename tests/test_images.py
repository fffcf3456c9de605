"""Pixels and the name of their content."""

from __future__ import annotations

import pytest

from hookline.images import Image
from hookline.messages import ImagePart, ImageUrl, Message


def test_the_digest_names_the_picture() -> None:
    pixels = bytes(range(12))
    assert Image(2, 2, pixels).digest == Image(2, 2, bytes(range(12))).digest
    assert Image(2, 2, pixels).digest != Image(4, 1, pixels).digest
    assert Image(2, 2, pixels).digest != Image(2, 2, bytes(12)).digest
    assert Image(2, 2, pixels) == Image(2, 2, pixels)
    assert Image(2, 2, pixels) != Image(2, 2, bytes(12))


@pytest.mark.parametrize(("width", "height", "count"), [(2, 2, 11), (2, 2, 13), (0, 2, 0)])
def test_pixels_of_another_number_are_refused(width: int, height: int, count: int) -> None:
    with pytest.raises(ValueError, match=f"{width} x {height} pixels"):
        Image(width, height, bytes(count))


def test_pixels_are_not_written_into_logs() -> None:
    assert "rgb" not in repr(Image(100, 100, bytes(30_000)))


def test_no_client_can_set_pixels() -> None:
    url = {"url": "data:image/png;base64,AA=="}
    for name in ("pixels", "_pixels", "rgb"):
        part = {"type": "image_url", "image_url": url, name: {"width": 1, "height": 1}}
        message = Message.model_validate({"role": "user", "content": [part]})
        assert message.images[0].pixels is None


def test_a_decoded_part_is_a_copy_that_outlives_copies_of_its_message() -> None:
    part = ImagePart(image_url=ImageUrl(url="data:image/png;base64,AA=="))
    image = Image(1, 1, b"abc")
    decoded = part.decoded(image)
    assert part.pixels is None
    assert decoded.pixels is image
    assert decoded.image_url == part.image_url
    message = Message(role="user", content=[decoded]).model_copy(deep=True)
    assert message.images[0].pixels == image
