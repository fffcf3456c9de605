"""Pixels of every kind of image: what comes out is upright, on white, with 8 bits a colour."""

from __future__ import annotations

import base64
import io
import json
import struct
import zlib
from typing import Any

import numpy as np
import pytest
from PIL import Image, PngImagePlugin

from hookline_vision.data_url import FORMATS
from hookline_vision.decoder import Request, Unreadable, decode, serve

RED, GREEN, BLUE, WHITE = (255, 0, 0), (0, 255, 0), (0, 0, 255), (255, 255, 255)
ORIENTATION = 0x0112


@pytest.fixture(autouse=True)
def as_in_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pillow's own limit is off: the decoder's comes first, and is not the same."""
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", None)


def encoded(image: Image.Image, form: str = "PNG", **options: Any) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, form, **options)
    return buffer.getvalue()


def pixels(data: bytes, form: str = "PNG", max_pixels: int = 40_000_000, side: int = 2048) -> Any:
    """The decoded image as an array of shape (height, width, 3)."""
    image = decode(base64.b64encode(data), Request(0, form, FORMATS, max_pixels, side))
    assert image.mode == "RGB"
    return np.asarray(image)


def reason(data: bytes, form: str = "PNG", **limits: int) -> str:
    with pytest.raises(Unreadable) as refused:
        pixels(data, form, **limits)
    return str(refused.value)


def two_colours() -> Image.Image:
    """Red, and green in its right half; twice as wide as high."""
    image = Image.new("RGB", (40, 20), RED)
    image.paste(GREEN, (20, 0, 40, 20))
    return image


@pytest.mark.parametrize("form", FORMATS)
def test_every_format(form: str) -> None:
    found = pixels(encoded(two_colours(), form), form)
    assert found.shape == (20, 40, 3)
    assert np.abs(found[10, 5].astype(int) - RED).max() < 8
    assert np.abs(found[10, 35].astype(int) - GREEN).max() < 8


@pytest.mark.parametrize(
    ("mode", "colour", "expected"),
    [
        ("1", 1, WHITE),
        ("L", 77, (77, 77, 77)),
        ("LA", (77, 255), (77, 77, 77)),
        ("LA", (77, 0), WHITE),
        ("RGBA", (255, 0, 0, 255), RED),
        ("RGBA", (255, 0, 0, 0), WHITE),
        ("RGBA", (255, 0, 0, 51), (255, 204, 204)),
        ("I;16", 0x4D80, (0x4D, 0x4D, 0x4D)),
    ],
)
def test_kinds_of_png(mode: str, colour: Any, expected: tuple[int, int, int]) -> None:
    found = pixels(encoded(Image.new(mode, (8, 8), colour)))
    assert tuple(found[4, 4]) == expected


@pytest.mark.parametrize(
    ("mode", "colour", "expected"),
    [
        ("CMYK", (0, 255, 255, 0), RED),
        ("I;16", 0x4D80, (0x4D, 0x4D, 0x4D)),
        ("I;16B", 0x4D80, (0x4D, 0x4D, 0x4D)),
        ("I", 65535, WHITE),
        ("I", 2**30, WHITE),
        ("F", 0.5, (127, 127, 127)),
        ("F", 200.0, (200, 200, 200)),
    ],
)
def test_kinds_of_tiff(mode: str, colour: Any, expected: tuple[int, int, int]) -> None:
    found = pixels(encoded(Image.new(mode, (8, 8), colour), "TIFF"), "TIFF")
    assert np.abs(found[4, 4].astype(int) - expected).max() <= 1


def test_sixteen_bits_are_scaled_and_not_cut_off() -> None:
    ramp = np.linspace(0, 65535, 256).astype(np.uint16).reshape(16, 16)
    found = pixels(encoded(Image.fromarray(ramp)))[:, :, 0].ravel()
    assert np.array_equal(found, np.arange(256))


def test_a_jpeg_in_print_colours() -> None:
    found = pixels(encoded(Image.new("CMYK", (16, 16), (255, 0, 255, 0)), "JPEG"), "JPEG")
    assert np.abs(found[8, 8].astype(int) - GREEN).max() < 8


def test_a_palette_with_a_transparent_colour() -> None:
    image = Image.new("P", (10, 10), 0)
    image.putpalette([*BLUE, *RED])
    image.paste(1, (5, 0, 10, 10))
    for form in ("PNG", "GIF"):
        found = pixels(encoded(image, form, transparency=0), form)
        assert (tuple(found[5, 2]), tuple(found[5, 8])) == (WHITE, RED)


@pytest.mark.parametrize("form", ["GIF", "WEBP", "PNG", "TIFF"])
def test_the_first_frame_counts(form: str) -> None:
    frames = [Image.new("RGB", (12, 12), colour) for colour in (RED, GREEN, BLUE)]
    data = encoded(frames[0], form, save_all=True, append_images=frames[1:])
    assert np.abs(pixels(data, form)[6, 6].astype(int) - RED).max() < 8


@pytest.mark.parametrize("form", ["JPEG", "PNG", "WEBP", "TIFF"])
@pytest.mark.parametrize(
    ("orientation", "width", "red_at"),
    [(1, 40, (10, 5)), (3, 40, (10, 35)), (6, 20, (5, 10)), (8, 20, (35, 10))],
)
def test_pictures_are_turned_upright(
    form: str, orientation: int, width: int, red_at: tuple[int, int]
) -> None:
    exif = Image.Exif()
    exif[ORIENTATION] = orientation
    found = pixels(encoded(two_colours(), form, exif=exif), form)
    assert found.shape[1] == width
    assert np.abs(found[red_at].astype(int) - RED).max() < 30


@pytest.mark.filterwarnings("ignore::UserWarning")  # as the process does
def test_nonsense_in_exif_does_no_harm() -> None:
    data = encoded(two_colours(), "JPEG", exif=b"Exif\0\0II*\0\xff\xff\xff\xff" + b"\xff" * 40)
    assert pixels(data, "JPEG").shape == (20, 40, 3)


def test_a_telephone_s_jpeg_of_several_pictures_is_a_jpeg() -> None:
    data = encoded(two_colours(), "MPO", save_all=True, append_images=[two_colours()])
    assert Image.open(io.BytesIO(data)).format == "MPO"
    assert pixels(data, "JPEG").shape == (20, 40, 3)


def test_large_pictures_are_scaled_down_and_small_ones_are_left_alone() -> None:
    wide = Image.new("RGB", (3000, 30), RED)
    for form in ("PNG", "JPEG"):
        assert pixels(encoded(wide, form), form, side=300).shape == (3, 300, 3)
    assert pixels(encoded(Image.new("RGB", (300, 3), RED)), side=100).shape == (1, 100, 3)
    assert pixels(encoded(two_colours()), side=100).shape == (20, 40, 3)


def test_a_wrong_type_is_named() -> None:
    told = reason(encoded(two_colours(), "JPEG"), "PNG")
    assert "declared as PNG and is JPEG" in told


def test_what_is_no_image_is_refused() -> None:
    for data in (b"hello", b"<svg xmlns='http://www.w3.org/2000/svg'/>", b"%PDF-1.7", b"\0" * 100):
        assert "is none of PNG, JPEG" in reason(data)
    assert "is none of" in reason(encoded(two_colours(), "ICO"))
    assert reason(b"") == "it is empty."


@pytest.mark.parametrize("form", ["PNG", "JPEG", "BMP", "TIFF", "WEBP"])
def test_half_an_image_is_refused(form: str) -> None:
    noise = np.random.default_rng(1).integers(0, 255, (64, 64, 3), dtype=np.uint8)
    data = encoded(Image.fromarray(noise), form)
    told = reason(data[: len(data) // 2], form)
    assert "damaged" in told


def chunk(name: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def png(width: int, height: int, *chunks: bytes) -> bytes:
    """A PNG that is made of its header and whatever else."""
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + b"".join(chunks)


@pytest.mark.parametrize("size", [(12_000, 12_000), (20_000, 20_000), (2**31 - 1, 2**31 - 1)])
def test_more_pixels_than_allowed_are_not_decoded(size: tuple[int, int]) -> None:
    told = reason(png(*size, chunk(b"IDAT", b"\0")))
    assert told.startswith(f"it has {size[0]} x {size[1]} pixels, more than the 40 megapixels")


@pytest.mark.parametrize("size", [(1, 3000), (101, 1)])
def test_what_is_next_to_a_line_is_refused(size: tuple[int, int]) -> None:
    told = reason(encoded(Image.new("RGB", size, RED)))
    assert told.startswith(f"it has {size[0]} x {size[1]} pixels, and one side may be at most 100")


@pytest.mark.parametrize("form", ["GIF", "BMP", "TIFF", "WEBP", "JPEG"])
def test_the_size_counts_in_every_format(form: str) -> None:
    data = encoded(Image.new("RGB", (200, 100)), form)
    assert "200 x 100 pixels" in reason(data, form, max_pixels=19_999)
    assert pixels(data, form, max_pixels=20_000).shape == (100, 200, 3)


def test_texts_and_profiles_that_unpack_to_too_much_are_refused() -> None:
    bomb = zlib.compress(b"\0" * 50_000_000)
    assert "damaged" in reason(png(8, 8, chunk(b"zTXt", b"a\0\0" + bomb), chunk(b"IDAT", b"")))
    profile = PngImagePlugin.PngInfo()
    profile.add_text("note", "x" * 1000, zip=True)
    assert pixels(encoded(two_colours(), pnginfo=profile)).shape == (20, 40, 3)


def test_a_tiff_whose_header_lies_is_refused() -> None:
    entries = [(256, 4, 1, 100), (257, 4, 1, 100), (259, 3, 1, 1), (273, 4, 2**31 - 1, 8)]
    directory = struct.pack("<H", len(entries))
    directory += b"".join(struct.pack("<HHII", *entry) for entry in entries)
    data = b"II*\0" + struct.pack("<I", 8) + directory + b"\0\0\0\0"
    assert reason(data, "TIFF")


@pytest.mark.parametrize(
    "write",
    [
        lambda text: text,
        lambda text: text.rstrip(b"="),
        lambda text: b"\n".join(text[i : i + 60] for i in range(0, len(text), 60)) + b" \t\r\n",
        lambda text: text.replace(b"+", b"%2B").replace(b"/", b"%2f").replace(b"=", b"%3D"),
    ],
)
def test_base64_as_browsers_take_it(write: Any) -> None:
    data = encoded(two_colours()) + b"\xfb\xff\xfe"
    assert len(data) % 3, "the text must have padding"
    text = base64.b64encode(data)
    assert b"+" in text or b"/" in text
    image = decode(write(text), Request(0, "PNG", FORMATS, 1000, 100))
    assert image.size == (40, 20)


@pytest.mark.parametrize(
    "text", [b"iVBORw0KGgo=AAAA", b"iVBOR", b"iVBO-w__", b"iVBOR*==", b"====", b"iVBORw0K\0"]
)
def test_what_is_no_base64_is_refused(text: bytes) -> None:
    with pytest.raises(Unreadable, match="not valid base64"):
        decode(text, Request(0, "PNG", FORMATS, 1000, 100))


def test_answers_follow_each_other() -> None:
    texts = [base64.b64encode(encoded(two_colours())), b"nonsense", base64.b64encode(b"x")]
    asked = b""
    for text in texts:
        about = Request(len(text), "PNG", FORMATS, 1000, 100)._asdict()
        asked += json.dumps(about).encode() + b"\n" + text
    answers = io.BytesIO()
    serve(io.BytesIO(asked), answers)
    answers.seek(0)
    assert json.loads(answers.readline()) == {"width": 40, "height": 20}
    assert answers.read(40 * 20 * 3)[:3] == bytes(RED)
    assert "refused" in json.loads(answers.readline())
    assert "is none of" in json.loads(answers.readline())["refused"]
    assert not answers.read()
