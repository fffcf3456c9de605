"""Decoders as processes: they are used again, and what breaks or blocks one harms nobody."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import os
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import pytest
from PIL import Image

from hookline_vision import decoders as module
from hookline_vision.decoders import Decoders, Limits
from hookline_vision.refusal import Refused

Start = Callable[..., AbstractAsyncContextManager[Decoders]]


@pytest.fixture
def text(encoded: Callable[..., bytes]) -> bytes:
    """A small image as base64."""
    return base64.b64encode(encoded(Image.new("RGB", (7, 5), (1, 2, 3))))


@pytest.fixture
def start() -> Start:
    @asynccontextmanager
    async def running(
        seconds: float = 30, memory: int = 2**30, most: int = 2
    ) -> AsyncIterator[Decoders]:
        decoders = Decoders(Limits(seconds, 40_000_000, memory), most)
        try:
            yield decoders
        finally:
            await decoders.close()

    return running


def children() -> set[int]:
    """The processes that this one has started."""
    found = set()
    for task in Path("/proc/self/task").iterdir():
        with contextlib.suppress(FileNotFoundError):
            found |= {int(pid) for pid in (task / "children").read_text().split()}
    return found


async def test_an_image(start: Start, text: bytes) -> None:
    async with start() as decoders:
        image = await decoders.decode(text, "PNG", 2048)
        assert (image.width, image.height, image.rgb) == (7, 5, bytes([1, 2, 3]) * 35)


async def test_one_process_serves_one_after_the_other(start: Start, text: bytes) -> None:
    before = children()
    async with start() as decoders:
        for _ in range(3):
            await decoders.decode(text, "PNG", 2048)
            with pytest.raises(Refused):
                await decoders.decode(b"AAAA", "PNG", 2048)
        assert len(children() - before) == 1
    assert children() == before


async def test_no_more_processes_than_allowed(start: Start, text: bytes) -> None:
    before = children()
    async with start(most=2) as decoders:
        images = await asyncio.gather(*(decoders.decode(text, "PNG", 2048) for _ in range(8)))
        assert {image.digest for image in images} == {images[0].digest}
        assert len(children() - before) == 2
    assert children() == before


async def test_it_starts_early_where_asked_to(start: Start) -> None:
    before = children()
    async with start() as decoders:
        await decoders.warm_up()
        await decoders.warm_up()
        assert len(children() - before) == 1


async def test_what_takes_too_long_is_killed(start: Start, text: bytes) -> None:
    before = children()
    async with start(seconds=1e-6) as decoders:
        with pytest.raises(Refused, match="decoding it takes more than 1e-06 s"):
            await decoders.decode(text, "PNG", 2048)
        assert children() == before


async def test_cancelling_kills(start: Start, text: bytes) -> None:
    before = children()
    async with start() as decoders:
        await decoders.warm_up()
        (pid,) = children() - before
        os.kill(pid, signal.SIGSTOP)
        asking = asyncio.create_task(decoders.decode(text, "PNG", 2048))
        await asyncio.sleep(0.05)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        assert children() == before
        assert await decoders.decode(text, "PNG", 2048)


async def test_a_decoder_that_died_while_idle_is_replaced(start: Start, text: bytes) -> None:
    before = children()
    async with start() as decoders:
        await decoders.warm_up()
        (pid,) = children() - before
        os.kill(pid, signal.SIGKILL)
        while pid in children():
            await asyncio.sleep(0.01)
        assert await decoders.decode(text, "PNG", 2048)


@pytest.mark.parametrize("source", ["import os; os.abort()", "print('what?')"])
async def test_a_decoder_that_breaks_costs_its_image_only(
    start: Start, text: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str
) -> None:
    script = tmp_path / "broken.py"
    script.write_text(f"input(); {source}")
    async with start() as decoders:
        with monkeypatch.context() as patched:
            patched.setattr(module, "SCRIPT", script)
            with pytest.raises(Refused, match="broke the decoder"):
                await decoders.decode(text, "PNG", 2048)
        assert await decoders.decode(text, "PNG", 2048)


async def test_memory_is_limited(start: Start, encoded: Callable[..., bytes]) -> None:
    large = base64.b64encode(encoded(Image.new("RGBA", (6000, 6000))))
    small = base64.b64encode(encoded(Image.new("RGBA", (9, 9))))
    async with start(memory=256 * 2**20) as decoders:
        with pytest.raises(Refused, match="too much memory"):
            await decoders.decode(large, "PNG", 16)
        assert (await decoders.decode(small, "PNG", 16)).width == 9
