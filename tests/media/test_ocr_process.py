"""The process that reads text in images: what it reads, and how it ends."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import AsyncIterator, Callable
from importlib.util import find_spec
from pathlib import Path

import pytest
from PIL import Image, ImageDraw, ImageFont

from hookline import Image as Pixels
from hookline.media import ocr_process as module
from hookline.media.ocr_process import ReaderBroke, TextProcess

BLANK = Pixels(8, 8, b"\xff" * 192)
WAITS = "import time; time.sleep(600)"
STANDS_IN = """\
import json, os, sys
def say(**message): print(json.dumps(message), flush=True)
say(ready=True)
for line in sys.stdin.buffer:
    size = json.loads(line)
    sys.stdin.buffer.read(size["width"] * size["height"] * 3)
    """

Use = Callable[[str], None]


@pytest.fixture
def image_costs(monkeypatch: pytest.MonkeyPatch) -> Use:
    """``image_costs(code)``: what a process does with an image, instead of reading it."""
    return lambda code: monkeypatch.setattr(module, "WORKER", ("-c", STANDS_IN + code))


@pytest.fixture
async def reader() -> AsyncIterator[TextProcess]:
    before = children()
    process = TextProcess(2048)
    yield process
    await process.close()
    assert children() == before


def children() -> set[int]:
    """The processes that this one has started."""
    found = set()
    for task in Path("/proc/self/task").iterdir():
        with contextlib.suppress(FileNotFoundError):
            found |= {int(pid) for pid in (task / "children").read_text().split()}
    return found


@pytest.mark.skipif(find_spec("rapidocr") is None, reason="needs hookline[ocr]")
async def test_text_is_read_and_what_takes_too_long_is_killed(reader: TextProcess) -> None:
    image = Image.new("RGB", (420, 160), "white")
    draw = ImageDraw.Draw(image)
    for place, line in enumerate(("Hookline", "Total 42.50")):
        font = ImageFont.load_default(size=40)
        draw.text((20, 15 + 75 * place), line, font=font, fill="black")
    page, before = Pixels(*image.size, image.tobytes()), children()
    read = await reader.read(page, 300)
    assert (read.text, read.lines, read.complete) == ("Hookline\nTotal 42.50", 2, True)
    (pid,) = children() - before
    assert (await reader.read(BLANK, 300)).complete
    assert children() - before == {pid}, "it is used again"
    os.kill(pid, signal.SIGSTOP)
    read = await reader.read(page, 0.05)
    assert (read.text, read.lines, read.complete) == ("", None, False)
    assert children() == before


async def test_what_was_read_in_time_is_kept(reader: TextProcess, image_costs: Use) -> None:
    image_costs(f"say(lines=3); say(text='first'); {WAITS}")
    before = children()
    asked = asyncio.create_task(reader.read(BLANK, 2))
    waits = asyncio.create_task(reader.read(BLANK, 2))
    for read in (await asked, await waits):
        assert (read.texts, read.lines, read.complete) == (["first"], 3, False)
    assert children() == before


async def test_whoever_leaves_stops_the_work(reader: TextProcess, image_costs: Use) -> None:
    image_costs(f"if size['width'] == 1: {WAITS}\n    say(lines=0)")
    before = children()
    assert (await reader.read(BLANK, 60)).complete
    assert children() != before
    asked = asyncio.create_task(reader.read(Pixels(1, 1, b"abc"), 600))
    await asyncio.sleep(0.05)
    asked.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asked
    assert children() == before
    assert (await reader.read(BLANK, 60)).complete


@pytest.mark.parametrize(
    "code", ["os.abort()", "print('what?', flush=True)", "say(lines=1); break"]
)
async def test_one_that_breaks_says_so(reader: TextProcess, image_costs: Use, code: str) -> None:
    image_costs(code)
    with pytest.raises(ReaderBroke, match="ended"):
        await reader.read(BLANK, 60)


async def test_one_that_does_not_start(
    reader: TextProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "WORKER", ("-c", "exit()"))
    with pytest.raises(ReaderBroke, match="start"):
        await reader.read(BLANK, 60)


async def test_it_ends_when_there_is_nothing_to_read(image_costs: Use) -> None:
    image_costs("say(lines=0)")
    before, reader = children(), TextProcess(2048, idle=0.05)
    for _ in range(2):
        assert (await reader.read(BLANK, 60)).complete
        while children() != before:
            await asyncio.sleep(0.01)
    await reader.close()
