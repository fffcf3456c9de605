"""From what was typed to the files that are meant."""

from __future__ import annotations

import glob
from collections.abc import Iterator, Sequence
from pathlib import Path

import click


def files_of(paths: Sequence[str]) -> list[Path]:
    """All files, absolute, each once, in order. Raises BadParameter where there is none."""
    found: dict[Path, None] = {}
    for path in paths:
        matched = list(_files(path))
        if not matched:
            raise click.BadParameter(f"no file is there: {path}", param_hint="PATH")
        found.update(dict.fromkeys(matched))
    return list(found)


def folders_of(paths: Sequence[str]) -> list[Path]:
    """The folders among them."""
    return [Path(path).absolute() for path in paths if Path(path).is_dir()]


def is_text(path: str) -> bool:
    """Whether a path is text: one that is not UTF-8 holds halves of surrogate pairs instead."""
    return not any("\ud800" <= letter <= "\udfff" for letter in path)


def is_hidden(path: Path, below: Path) -> bool:
    """Whether a file or a folder on the way to it begins with a dot, as editors' own files do."""
    return any(part.startswith(".") for part in path.relative_to(below).parts)


def _files(path: str) -> Iterator[Path]:
    given = Path(path)
    if given.is_file():
        yield given.absolute()
    elif given.is_dir():
        yield from in_folder(given.absolute())
    else:
        for match in sorted(glob.glob(path, recursive=True)):  # noqa: PTH207 absolute ones too
            yield from _files(match) if Path(match).is_file() else ()


def in_folder(folder: Path) -> Iterator[Path]:
    """The files of a folder and those below, but hidden ones."""
    for path in sorted(folder.rglob("*")):
        if path.is_file() and not is_hidden(path, folder):
            yield path
