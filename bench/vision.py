"""Measures what images cost, over HTTP: `python -m bench.vision --help`.

A conversation with an image is asked again and again, and so is one of as many tokens without; then
an image is shown while another answer is written. Four requests at once that do not get the answers
of each alone are an error.
"""

from __future__ import annotations

import asyncio
import base64
import io
import sys
import time
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

import click
import httpx
from bench.client import Messages, ask, content, parsed
from bench.servers import Shape, serving
from PIL import Image, ImageDraw
from rich.console import Console
from rich.table import Table

from hookline.config import DEFAULT_MODEL
from hookline.models import find_model

QUESTION = "What color is it?"
PAUSE = 0.3
"""Seconds after an answer, in which the server reads it again for the next turn."""

COLORS = ("red", "blue", "green", "yellow")


@dataclass
class Figures:
    """Milliseconds, by what they are of."""

    values: dict[str, list[float]] = field(default_factory=dict)

    def add(self, what: str, seconds: float) -> None:
        """Notes a time."""
        self.values.setdefault(what, []).append(seconds * 1000)

    def middle(self, what: str) -> float:
        """The median."""
        return median(self.values[what])


def picture(number: int, size: int) -> str:
    """A PNG as a data URL: a coloured square, and noise at an edge that makes each one new."""
    image = Image.new("RGB", (size, size * 3 // 4), "white")
    draw = ImageDraw.Draw(image)
    draw.rectangle((size // 4, size // 6, size * 3 // 4, size * 2 // 3), fill=COLORS[number % 4])
    for bit in range(16):
        draw.point((bit, 0), fill="black" if number >> bit & 1 else "white")
    png = io.BytesIO()
    image.save(png, "PNG")
    return f"data:image/png;base64,{base64.b64encode(png.getvalue()).decode()}"


def looking(number: int, size: int, count: int = 1) -> Messages:
    """A question about images that no other is about."""
    urls = [picture(number * 16 + place, size) for place in range(count)]
    parts = [{"type": "image_url", "image_url": {"url": url}} for url in urls]
    return [{"role": "user", "content": [*parts, {"type": "text", "text": QUESTION}]}]


def reading(number: int, words: int) -> Messages:
    """The same question behind as many words as an image has tokens."""
    filler = " ".join("garden" if number >> bit % 16 & 1 else "river" for bit in range(words))
    return [{"role": "user", "content": f"{filler}{QUESTION}"}]


@dataclass
class Bench:
    """What is measured of a server."""

    url: str
    size: int
    rounds: int
    figures: Figures = field(default_factory=Figures)

    async def run(self) -> bool:
        """Measures everything; whether answers beside others were those given alone."""
        async with httpx.AsyncClient(timeout=600) as client:
            words = await self._image_tokens(client)
            for number in range(1, self.rounds + 1):
                image, text = looking(number, self.size), reading(number, words)
                for turn in ("new", "again", "again"):
                    await self._first_token(client, f"image, {turn}", image)
                    await self._first_token(client, f"words, {turn}", text)
                await self._beside(client, number)
            await self._sixteen(client)
            return await self._alone_and_together(client)

    async def _image_tokens(self, client: httpx.AsyncClient) -> int:
        """How many words take as much of the context as one image."""
        with_image = await self._whole(client, looking(0, self.size))
        without = await self._whole(client, reading(0, 1))
        used: int = with_image["usage"]["prompt_tokens"] - without["usage"]["prompt_tokens"]
        return used + 1

    async def _whole(self, client: httpx.AsyncClient, messages: Messages) -> dict[str, Any]:
        body = {"messages": messages, "max_tokens": 12}
        response = await client.post(f"{self.url}/chat/completions", json=body)
        response.raise_for_status()
        answer: dict[str, Any] = response.json()
        return answer

    async def _first_token(self, client: httpx.AsyncClient, what: str, messages: Messages) -> None:
        answer = await ask(client, self.url, messages, 4)
        self.figures.add(f"first token, {what}", answer.first)
        await asyncio.sleep(PAUSE)

    async def _beside(self, client: httpx.AsyncClient, number: int) -> None:
        """The longest pause of a stream while an image is looked at, and what encoding took."""
        writing = asyncio.create_task(self._longest_pause(client))
        await asyncio.sleep(0.5)
        answer = await self._whole(client, looking(1000 + number, self.size))
        self.figures.add("encoding an image", answer["timings"]["vision_ms"] / 1000)
        self.figures.add("longest pause of a stream meanwhile", await writing)

    async def _longest_pause(self, client: httpx.AsyncClient) -> float:
        body = {
            "messages": [{"role": "user", "content": "Write a long story about a lighthouse."}],
            "max_tokens": 100,
            "stream": True,
        }
        times: list[float] = []
        async with client.stream("POST", f"{self.url}/chat/completions", json=body) as response:
            async for line in response.aiter_lines():
                chunk = parsed(line)
                if chunk is not None and content(chunk):
                    times.append(time.perf_counter())
        return max((b - a for a, b in pairwise(times)), default=0.0)

    async def _sixteen(self, client: httpx.AsyncClient) -> None:
        began = time.perf_counter()
        await self._whole(client, looking(2000, self.size, 16))
        self.figures.add("sixteen new images, whole answer", time.perf_counter() - began)

    async def _alone_and_together(self, client: httpx.AsyncClient) -> bool:
        questions = [looking(3000 + number, self.size) for number in range(4)]
        together = await asyncio.gather(*(self._whole(client, each) for each in questions))
        alone = [await self._whole(client, each) for each in questions]
        return [_text(one) for one in together] == [_text(one) for one in alone]


def _text(answer: dict[str, Any]) -> str:
    text: str = answer["choices"][0]["message"]["content"]
    return text


def report(figures: Figures) -> Table:
    """All figures, and how much longer a repeated image takes than repeated words."""
    table = Table("measured", "p50 ms", "most ms")
    for what, values in figures.values.items():
        table.add_row(what, f"{median(values):.1f}", f"{max(values):.1f}")
    image, words = (figures.middle(f"first token, {kind}, again") for kind in ("image", "words"))
    table.add_row("first token again, image / words", f"{image / words:.2f}", "")
    return table


@click.command()
@click.option("--model", default=DEFAULT_MODEL, help="A model source.")
@click.option("--mmproj", required=True, type=click.Path(path_type=Path), help="Its projector.")
@click.option("--size", default=640, help="Width of the images, in pixels.")
@click.option("--rounds", default=10, help="How often everything is asked.")
@click.option("--threads", default=2, help="Threads of the engine.")
@click.option("--parallel", default=4, help="Requests answered at once.")
def main(model: str, mmproj: Path, size: int, rounds: int, threads: int, parallel: int) -> None:
    """Starts a server and measures it."""
    path = find_model(model, Path.home()).path
    shape = Shape(path, 4096, parallel, threads, mmproj=mmproj.absolute())
    with serving("hookline", shape) as target:
        bench = Bench(target.url, size, rounds)
        same = asyncio.run(bench.run())
    Console().print(report(bench.figures))
    if not same:
        sys.exit("Four requests at once got other answers than each alone.")


if __name__ == "__main__":
    main()
