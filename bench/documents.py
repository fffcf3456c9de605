"""How fast files become text and passages: through the processes that read them, and then cut.

    python bench/documents.py                  # PDFs made for it, 1,000 pages
    python bench/documents.py FOLDER FILE …    # files of any kind, with what became of each

Pages are the sections of PDFs.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil
from rich.console import Console
from rich.table import Table

from hookline import Document
from hookline_knowledge.chunks import chunked
from hookline_knowledge.parsing import Parser, ParsingSettings, Unreadable

PAGES = 20
FILES = 50
LINES = 48
WORDS = (
    "the of and to in a is that for it as was with be by on not he this are or his from at which "
    "house rent cellar garden window heating water month tenant owner key door letter bridge load"
)
MUST_REACH = 60.0
"""Pages a second on two cores."""


@dataclass(frozen=True)
class Outcome:
    """What became of a file; ``seconds`` count from the start of reading it."""

    name: str
    seconds: float
    document: Document | None = None
    reason: str = ""


def made_pdf(seed: int) -> bytes:
    """A PDF of twenty pages full of words."""
    chance = random.Random(seed)  # noqa: S311
    objects = [
        "<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Kids [{' '.join(f'{4 + 2 * i} 0 R' for i in range(PAGES))}] "
        f"/Count {PAGES} >>",
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ]
    for page in range(PAGES):
        lines = (f"({' '.join(chance.choices(WORDS.split(), k=12))}.) Tj T*" for _ in range(LINES))
        text = f"BT /F1 11 Tf 14 TL 50 740 Td {' '.join(lines)} ET"
        objects += [
            "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Resources "
            f"<< /Font << /F1 3 0 R >> >> /Contents {5 + 2 * page} 0 R >>",
            f"<< /Length {len(text)} >>\nstream\n{text}\nendstream",
        ]
    out, places = "%PDF-1.7\n", []
    for number, content in enumerate(objects, 1):
        places.append(f"{len(out):010} 00000 n \n")
        out += f"{number} 0 obj\n{content}\nendobj\n"
    table = f"xref\n0 {len(objects) + 1}\n0000000000 65535 f \n{''.join(places)}"
    trailer = f"trailer\n<< /Size {len(objects) + 1} /Root 1 0 R >>\nstartxref\n{len(out)}\n%%EOF\n"
    return (out + table + trailer).encode()


async def read(parser: Parser, name: str, data: bytes | Path) -> Outcome:
    """One file."""
    start = time.perf_counter()
    try:
        document = await parser.parse(data, name)
    except Unreadable as error:
        return Outcome(name, time.perf_counter() - start, reason=error.reason)
    return Outcome(name, time.perf_counter() - start, document)


async def read_all(files: Sequence[tuple[str, bytes | Path]], workers: int) -> list[Outcome]:
    """All files, as many at once as there are processes; they are started before."""
    parser = Parser(ParsingSettings(workers=workers))
    try:
        warm = [parser.parse(made_pdf(0), "warm.pdf") for _ in range(workers)]
        await asyncio.gather(*warm)
        start, busy = time.perf_counter(), processor_seconds()
        outcomes = await asyncio.gather(*(read(parser, *file) for file in files))
        report(outcomes, time.perf_counter() - start, processor_seconds() - busy)
        return outcomes
    finally:
        await parser.close()


def processor_seconds() -> float:
    """Time on a processor of this process and those that read."""
    processes = [psutil.Process(), *psutil.Process().children()]
    times = [process.cpu_times() for process in processes]
    return sum(spent.user + spent.system for spent in times)


def report(outcomes: Sequence[Outcome], seconds: float, busy: float) -> None:
    """Rates, and the memory of the processes that read."""
    documents = [outcome.document for outcome in outcomes if outcome.document is not None]
    pages = sum(len(d.sections) for d in documents if d.media_type == "application/pdf")
    letters = sum(len(section.text) for d in documents for section in d.sections)
    memory = [process.memory_info().rss // 2**20 for process in psutil.Process().children()]
    Console().print(
        f"{len(outcomes)} files, {pages} pages of PDFs, {letters:,} characters in {seconds:.2f} s "
        f"({busy:.2f} s of processors): {pages / seconds:.0f} pages a second (wanted: "
        f"{MUST_REACH:.0f}), {letters / seconds / 1e6:.2f} M characters a second; "
        f"memory of the processes {memory} MiB"
    )


def report_files(outcomes: Sequence[Outcome]) -> None:
    """What became of each file."""
    table = Table("file", "seconds", "sections", "characters", "kind or reason")
    for outcome in outcomes:
        if (document := outcome.document) is None:
            table.add_row(outcome.name, f"{outcome.seconds:.2f}", "-", "-", outcome.reason)
            continue
        size = sum(len(section.text) for section in document.sections)
        told = "; ".join([document.media_type, *document.notes])
        parts = str(len(document.sections))
        table.add_row(outcome.name, f"{outcome.seconds:.2f}", parts, f"{size:,}", told)
    Console().print(table)


def report_chunks(outcomes: Sequence[Outcome]) -> None:
    """How fast the text is cut, with a count that costs little."""
    start, passages = time.perf_counter(), 0
    for outcome in outcomes:
        if outcome.document is not None:
            passages += sum(1 for _ in chunked(outcome.document.sections, count, 256, 32))
    seconds = time.perf_counter() - start
    Console().print(f"{passages:,} passages in {seconds:.2f} s: {passages / seconds:,.0f} a second")


def count(text: str) -> int:
    """Words and marks."""
    return len(re.findall(r"\w+|[^\w\s]", text))


def found(paths: Sequence[Path]) -> list[tuple[str, bytes | Path]]:
    """The files, and those in the folders."""
    files = [p for path in paths for p in (sorted(path.rglob("*")) if path.is_dir() else [path])]
    return [(path.name, path) for path in files if path.is_file()]


async def main() -> None:
    """Reads and cuts."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("paths", nargs="*", type=Path)
    parser.add_argument("--workers", type=int, default=2)
    asked = parser.parse_args()
    made: list[tuple[str, bytes | Path]] = [(f"{i}.pdf", made_pdf(i)) for i in range(FILES)]
    outcomes = await read_all(found(asked.paths) or made, asked.workers)
    if asked.paths:
        report_files(outcomes)
    report_chunks(outcomes)


if __name__ == "__main__":
    asyncio.run(main())
