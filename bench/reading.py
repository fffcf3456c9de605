"""Reading pages: how much of the main content comes back, how fast, and what the server feels.

    python bench/reading.py quality [FOLDER] [--most 200]
    python bench/reading.py beside [--searches 4] [--pages 6]

``quality`` reads the pages of the tests, or those of a folder laid out as the Web Content
Extraction Benchmark is (``ground-truth/ID.json`` with ``ground_truth.main_content`` and
``html/ID.html.gz``), and prints F1 over words by kind of page. ``beside`` measures how late an
event loop is while so many searches read so many pages each at once.
"""

from __future__ import annotations

import argparse
import asyncio
import gzip
import json
import random
import re
import statistics
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import lxml.html

from hookline_websearch.content.charset import decode
from hookline_websearch.content.html import read_html
from hookline_websearch.content.pool import ReadingPool

TESTS = Path(__file__).parent.parent / "tests" / "websearch" / "pages"
TICK = 0.001


@dataclass(frozen=True)
class Sample:
    """A page, and the words that matter in it."""

    kind: str
    name: str
    html: str
    wanted: str


def ours() -> Iterator[Sample]:
    """The pages of the tests, whose content is marked by comments."""
    for path in sorted(TESTS.glob("*.html")):
        html = decode(path.read_bytes())
        parts = re.findall(r"<!--main-->(.*?)<!--/main-->", html, re.S)
        wanted = " ".join(" ".join(lxml.html.fromstring(f"<p>{p}</p>").itertext()) for p in parts)
        if wanted:
            yield Sample(path.stem, path.stem, re.sub(r"<!--.*?-->", "", html, flags=re.S), wanted)


def theirs(folder: Path, most: int) -> Iterator[Sample]:
    """Up to so many pages of a benchmark, chosen at random, the same each time."""
    truths = sorted((folder / "ground-truth").glob("*.json"))
    for path in sorted(random.Random(1).sample(truths, min(most, len(truths)))):  # noqa: S311
        about = json.loads(path.read_text(encoding="utf-8"))
        wanted = about["ground_truth"].get("main_content")
        packed = folder / "html" / f"{path.stem}.html.gz"
        if wanted and packed.exists():
            html = decode(gzip.decompress(packed.read_bytes()))
            yield Sample(about["_internal"]["page_type"]["primary"], path.stem, html, wanted)


def f1(text: str, wanted: str) -> float:
    """Of words, links' addresses and Markdown's signs left out."""
    found, marked = (
        Counter(re.findall(r"[^\W_]+", re.sub(r"\]\([^)]*\)", "]", t).lower()))
        for t in (text, wanted)
    )
    return 2 * (found & marked).total() / max(1, found.total() + marked.total())


def quality(samples: Iterator[Sample]) -> None:
    """Prints F1 and seconds by kind."""
    scores: dict[str, list[float]] = defaultdict(list)
    times: list[float] = []
    for sample in samples:
        begin = time.perf_counter()
        text = read_html(sample.html, "https://site.test/page").text
        times.append(time.perf_counter() - begin)
        scores[sample.kind].append(f1(text, sample.wanted))
    for kind, found in sorted(scores.items()):
        print(f"{kind:16} {len(found):4} pages  F1 {statistics.mean(found):.3f}")
    everything = [score for found in scores.values() for score in found]
    print(f"{'all':16} {len(everything):4} pages  F1 {statistics.mean(everything):.3f}")
    print(f"a page: median {statistics.median(times):.3f} s, longest {max(times):.2f} s")


async def beside(searches: int, pages: int) -> None:
    """Prints how late the loop is while pages are read."""
    pool = ReadingPool(processes=2, seconds=60)
    bodies = [path.read_bytes() for path in sorted(TESTS.glob("*.html"))]
    await pool.read(bodies[0], "text/html", "", "https://site.test/", 10**6)
    late: list[float] = []
    ticking = asyncio.create_task(_tick(late))
    await asyncio.sleep(1)
    alone, busy = list(late), len(late)
    begin = time.perf_counter()
    await asyncio.gather(
        *(
            pool.read(bodies[n % len(bodies)], "text/html", "", "https://site.test/", 10**6)
            for n in range(searches * pages)
        )
    )
    seconds = time.perf_counter() - begin
    ticking.cancel()
    await pool.close()
    for name, values in (("alone", alone), ("beside reading", late[busy:])):
        p95 = statistics.quantiles(values, n=20)[-1]
        print(f"{name:16} p95 {p95 * 1000:6.2f} ms late, most {max(values) * 1000:6.1f} ms")
    print(f"{searches * pages} pages in {seconds:.2f} s")


async def _tick(late: list[float]) -> None:
    while True:
        begin = time.perf_counter()
        await asyncio.sleep(TICK)
        late.append(time.perf_counter() - begin - TICK)


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    one = commands.add_parser("quality")
    one.add_argument("folder", type=Path, nargs="?")
    one.add_argument("--most", type=int, default=200)
    two = commands.add_parser("beside")
    two.add_argument("--searches", type=int, default=4)
    two.add_argument("--pages", type=int, default=6)
    asked = parser.parse_args()
    if asked.command == "quality":
        quality(theirs(asked.folder, asked.most) if asked.folder else ours())
    else:
        asyncio.run(beside(asked.searches, asked.pages))


if __name__ == "__main__":
    main()
