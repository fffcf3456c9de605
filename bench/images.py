"""What decoding images costs, and whether hostile ones do harm: `python bench/images.py`.

Needs no model. Times are from a message's image part to the pixels an engine gets, in this process
and in a decoder's; megabytes are of both together.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import io
import os
import random
import time
from collections import Counter

import numpy as np
import psutil
from PIL import Image

from hookline import ImagePart, ImageUrl, InvalidRequest
from hookline_vision.pictures import Pictures
from hookline_vision.settings import VisionSettings

FORMATS = {
    "PNG": "image/png",
    "JPEG": "image/jpeg",
    "WEBP": "image/webp",
    "GIF": "image/gif",
    "BMP": "image/bmp",
    "TIFF": "image/tiff",
}


def encoded(image: Image.Image, form: str = "PNG") -> bytes:
    """The image as a file."""
    buffer = io.BytesIO()
    image.save(buffer, form)
    return buffer.getvalue()


def part(data: bytes, form: str = "PNG", detail: str = "") -> ImagePart:
    """The file as a part of a message."""
    text = base64.b64encode(data).decode()
    return ImagePart(image_url=ImageUrl(url=f"data:{FORMATS[form]};{detail}base64,{text}"))


def photograph(width: int, height: int) -> Image.Image:
    """Soft shapes with some noise: compresses about as photographs do."""
    chance = np.random.default_rng(7)
    size = (height // 40 + 1, width // 40 + 1, 3)
    shapes = Image.fromarray(chance.integers(0, 255, size, dtype=np.uint8))
    smooth = np.asarray(shapes.resize((width, height), Image.Resampling.BICUBIC))
    return Image.fromarray((smooth + chance.normal(0, 4, smooth.shape)).clip(0, 255).astype("u1"))


def megabytes() -> float:
    """Memory of this process and its decoders."""
    here = psutil.Process()
    return float(sum(p.memory_info().rss for p in (here, *here.children())) / 1e6)


async def timed(pictures: Pictures, data: bytes, form: str, rounds: int) -> str:
    """Milliseconds of the best and the middle round, nothing remembered in between."""
    times = []
    for number in range(rounds):
        image = part(data, form, f"round={number};")
        begin = time.perf_counter()
        await pictures.decoded({"image": image})
        times.append((time.perf_counter() - begin) * 1000)
    return f"{min(times):7.1f} {sorted(times)[rounds // 2]:7.1f}"


async def decoding(pictures: Pictures, rounds: int) -> None:
    """A picture of 1920 x 1080 in every format."""
    picture = photograph(1920, 1080)
    print("1920 x 1080      MB    best  median  (ms)")
    for form in FORMATS:
        data = encoded(picture, form)
        print(f"{form:10} {len(data) / 1e6:8.2f} {await timed(pictures, data, form, rounds)}")


async def bombs(pictures: Pictures, rounds: int) -> None:
    """Small files of very many pixels."""
    print("\nrefused          kB    best (ms)  more memory (MB)")
    for side, mode in ((12_000, "L"), (20_000, "1")):
        data = encoded(Image.new(mode, (side, side)))
        before, times = megabytes(), []
        for _ in range(rounds):
            begin = time.perf_counter()
            try:
                await pictures.decoded({"image": part(data)})
            except InvalidRequest:
                times.append((time.perf_counter() - begin) * 1000)
        kilobytes, more = len(data) / 1e3, megabytes() - before
        print(f"{side**2 / 1e6:.0f} MP {kilobytes:13.1f} {min(times):8.1f} {more:12.1f}")


async def hostile(pictures: Pictures, count: int) -> None:
    """Damaged files of every format: each is decoded or refused, and nothing stays behind."""
    chance = random.Random(11)  # noqa: S311
    good = {form: encoded(photograph(96, 64), form) for form in FORMATS}
    outcome: Counter[str] = Counter()
    files = len(os.listdir("/proc/self/fd"))  # noqa: PTH208
    before = 0.0
    for number in range(count):
        form = list(FORMATS)[number % len(FORMATS)]
        data = bytearray(good[form])
        for _ in range(chance.choice((1, 4, 30))):
            data[chance.randrange(len(data))] = chance.randrange(256)
        end = len(data) if chance.random() < 0.7 else chance.randrange(8, len(data))
        try:
            await pictures.decoded({"image": part(bytes(data[:end]), form)})
            outcome["decoded"] += 1
        except InvalidRequest:
            outcome["refused"] += 1
        before = before or (megabytes() if number == count // 5 else 0.0)
    more, more_files = megabytes() - before, len(os.listdir("/proc/self/fd")) - files  # noqa: PTH208
    print(f"\n{count} damaged images: {dict(outcome)}, {more:+.1f} MB, {more_files:+d} open files")


async def main(rounds: int, count: int) -> None:
    """All of it."""
    Image.MAX_IMAGE_PIXELS = None
    pictures = Pictures(VisionSettings(cache_mb=0))
    try:
        await pictures.warm_up()
        await decoding(pictures, rounds)
        await bombs(pictures, rounds)
        await hostile(pictures, count)
    finally:
        await pictures.close()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--hostile", type=int, default=500, help="damaged images")
    options = parser.parse_args()
    asyncio.run(main(options.rounds, options.hostile))
