"""Keeps collections in step with folders."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path

import click

from hookline.commands import note
from hookline_knowledge.cli.adding import Adding, Summary
from hookline_knowledge.cli.paths import folders_of, in_folder

LOOK_MS = 3000

Stamp = tuple[int, int]
"""When a file was changed, in nanoseconds, and its size in bytes."""


async def watch_folders(
    adding: Adding, paths: Sequence[str], tell: Callable[[Summary], None]
) -> None:
    """Adds what is new or has changed and removes what is gone, until it is interrupted."""
    import watchfiles

    folders = folders_of(paths)
    if not folders:
        raise click.BadParameter("--watch needs a folder to watch.", param_hint="PATH")
    watched = Watched(adding, folders)
    await _step(watched, tell)
    note(f"Watching {', '.join(map(str, folders))}. Ctrl-C ends it.")
    # Looks from time to time too: for what changed before the watch stood, and on file systems
    # that tell nobody.
    changes = watchfiles.awatch(*folders, debounce=800, rust_timeout=LOOK_MS, yield_on_timeout=True)
    async for _ in changes:
        await _step(watched, tell)


async def _step(watched: Watched, tell: Callable[[Summary], None]) -> None:
    news = await watched.catch_up()
    if news.added or news.removed or news.failed:
        tell(news)


class Watched:
    """Folders, and what of them has been seen."""

    def __init__(self, adding: Adding, folders: Sequence[Path]) -> None:
        self._adding = adding
        self._folders = folders
        self._seen: dict[Path, Stamp] = {}

    async def catch_up(self) -> Summary:
        """Brings the collection to what the folders hold now."""
        there = await asyncio.to_thread(self._stamps)
        gone = [path for path in await self._adding.origins() if self._is_gone(path, there)]
        removed = await self._adding.remove_files(gone)
        if gone:
            self._seen.clear()  # another file may have had the same bytes, and now has its place
        news = [path for path, stamp in there.items() if self._seen.get(path) != stamp]
        summary = await self._adding.add_files(news) if news else removed
        self._seen = there
        summary.removed = removed.removed
        return summary

    def _stamps(self) -> dict[Path, Stamp]:
        stamps = {}
        for folder in self._folders:
            for path in in_folder(folder):
                try:
                    status = path.stat()
                except FileNotFoundError:  # gone between the listing and now
                    continue
                stamps[path] = (status.st_mtime_ns, status.st_size)
        return stamps

    def _is_gone(self, path: Path, there: dict[Path, Stamp]) -> bool:
        inside = any(path.is_relative_to(folder) for folder in self._folders)
        return inside and path not in there
