"""Images that were good once: whatever is changed in them, an answer or a refusal comes back."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from PIL import Image

from hookline.testing import LocalServer

FORMS = {
    "PNG": "image/png",
    "JPEG": "image/jpeg",
    "WEBP": "image/webp",
    "GIF": "image/gif",
    "BMP": "image/bmp",
    "TIFF": "image/tiff",
}


def damaged(data: bytes, chance: random.Random) -> bytes:
    """The file with some bytes changed, cut out, doubled, or with its end missing."""
    changed = bytearray(data)
    for _ in range(chance.choice((1, 2, 8, 40))):
        place = chance.randrange(len(changed))
        kind = chance.randrange(5)
        if kind == 0:
            changed[place] = chance.randrange(256)
        elif kind == 1:
            changed[place : place + 4] = chance.choice(
                (b"\xff" * 4, b"\0" * 4, b"\x7f\xff\xff\xff")
            )
        elif kind == 2:
            del changed[place : place + chance.randrange(1, 9)]
        elif kind == 3:
            changed[place:place] = changed[place : place + chance.randrange(1, 64)]
        elif len(changed) > 40:
            del changed[chance.randrange(20, len(changed)) :]
    return bytes(changed)


@pytest.mark.parametrize("form", FORMS)
def test_damaged_images(
    seeing: LocalServer, encoded: Callable[..., bytes], part: Callable[..., Any], form: str
) -> None:
    chance = random.Random(form)  # noqa: S311
    noise = np.random.default_rng(5).integers(0, 255, (24, 32, 3), dtype=np.uint8)
    good = encoded(Image.fromarray(noise), form)
    seen = set()
    for _ in range(20):
        content = [part(damaged(good, chance), FORMS[form])]
        body = {"messages": [{"role": "user", "content": content}], "max_tokens": 1}
        response = seeing.client.post("/v1/chat/completions", json=body)
        seen.add(response.status_code)
        if response.status_code != 200:
            error = response.json()["error"]
            assert error["param"] == "messages[0].content[0]", error
    assert 400 in seen
    assert seen <= {200, 400}
    pictures = seeing.plugin("vision")._pictures
    assert len(pictures._decoders._free) == 1
