"""Adds files of this machine to a collection and waits until they are read."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from hookline import ApiError
from hookline_knowledge.base import KnowledgeBase
from hookline_knowledge.blobs import read_file
from hookline_knowledge.catalog import Collection, Member, batches, collections, files, members
from hookline_knowledge.cli.paths import files_of, is_text
from hookline_knowledge.names import document_name

PURPOSE = "user_data"
POLL_SECONDS = 0.1


@dataclass(slots=True)
class Summary:
    """What became of the files, by path; of those that failed, or of which parts are missing, also
    why."""

    collection: str
    added: list[str] = field(default_factory=list)
    unchanged: list[str] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)
    notes: dict[str, str] = field(default_factory=dict)


class Adding:
    """Adds to one collection. ``quiet`` shows no progress."""

    def __init__(self, base: KnowledgeBase, collection: Collection, *, quiet: bool) -> None:
        self.base = base
        self.collection = collection
        self._quiet = quiet

    async def add(self, paths: Sequence[str]) -> Summary:
        """Adds what the paths mean."""
        return await self.add_files(await asyncio.to_thread(files_of, paths))

    async def add_files(self, paths: Sequence[Path]) -> Summary:
        """Adds files; the first are read while the last are being copied."""
        summary = Summary(self.collection.name)
        library, batch = self.base.library, f"vsfb_{secrets.token_hex(12)}"
        await library.catalog.write(batches.add, batch, self.collection.number, library.now)
        ingest, sent = self.base.ingest(batch), dict[str, Path]()
        async with ingest.running():
            with progress(self._quiet) as bar:
                task = bar.add_task(f"Adding to {self.collection.name}", total=len(paths))
                for number, path in enumerate(paths, 1):
                    if (file := await self._send(path, batch, summary)) is not None:
                        sent[file] = path
                        ingest.wake()
                    bar.update(task, completed=number - await self._left(batch))
                while left := await self._left(batch):
                    bar.update(task, completed=len(paths) - left)
                    await asyncio.sleep(POLL_SECONDS)
        for file, path in sent.items():
            await self._conclude(file, path, summary)
        return summary

    async def remove_files(self, paths: Sequence[Path]) -> Summary:
        """Removes what was added from paths that are gone."""
        summary = Summary(self.collection.name)
        for path in paths:
            for file in await self.base.library.catalog.read(files.from_origin, str(path)):
                if await self._member(file.id):
                    await self.base.library.remove_file(file.id)
                    summary.removed.append(str(path))
        return summary

    async def origins(self) -> list[Path]:
        """The paths from which documents of the collection came."""
        found = await self.base.library.catalog.read(files.origins, self.collection.number)
        return [Path(origin) for origin in found]

    async def _send(self, path: Path, batch: str, summary: Summary) -> str | None:
        """Copies a file and queues it; None where it is there already or cannot be had."""
        library = self.base.library
        if not is_text(str(path)):
            summary.failed[repr(str(path))] = "its name or folder is not UTF-8; rename it"
            return None
        try:
            received = await library.blobs.receive(read_file(path), self.base.file_bytes)
        except (OSError, ApiError) as error:
            summary.failed[str(path)] = str(error)
            return None
        number = self.collection.number
        if await library.catalog.read(members.with_hash, number, received.hash) is not None:
            library.blobs.discard(received)
            summary.unchanged.append(str(path))
            return None
        file = await library.add_file(
            received, document_name(path.name), purpose=PURPOSE, origin=str(path)
        )
        await library.add_members(self.collection, [(file.id, {}, self.base.chunking)], batch=batch)
        return file.id

    async def _member(self, file: str) -> Member | None:
        catalog = self.base.library.catalog
        return await catalog.read(members.find, self.collection.number, file)

    async def _left(self, batch: str) -> int:
        counts = await self.base.library.catalog.read(collections.batch_counts, batch)
        return counts.in_progress

    async def _conclude(self, file: str, path: Path, summary: Summary) -> None:
        """Sorts what was sent; what failed is not kept, nor are versions that were replaced."""
        member = await self._member(file)
        if member is not None and member.status == "completed":
            summary.added.append(str(path))
            if member.error_message:
                summary.notes[str(path)] = member.error_message
        else:
            reason = member.error_message if member else "it was removed meanwhile"
            summary.failed[str(path)] = reason or f"it is {member.status if member else 'gone'}"
            await self.base.library.remove_file(file)
        for old in await self.base.library.catalog.read(files.outdated, str(path)):
            await self.base.library.remove_file(old)


def progress(quiet: bool) -> Progress:
    """A bar on a terminal's stderr, which goes when it is full."""
    console = Console(stderr=True)
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=console,
        disable=quiet or not console.is_terminal,
        transient=True,
    )
