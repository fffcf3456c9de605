"""Zip archives, the bodies of office files and books, opened within limits."""

from __future__ import annotations

import io
import zipfile
import zlib

from hookline_knowledge.parsing.settings import MIB, ParsingSettings
from hookline_knowledge.parsing.unreadable import Unreadable

ENTRIES_MAX = 20_000
ENCRYPTED = 0x1

BROKEN = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, KeyError, OSError)
"""What the standard library raises for an archive that is damaged or of an unknown kind."""


def open_archive(data: bytes, limits: ParsingSettings) -> zipfile.ZipFile:
    """An archive whose parts are no bomb. Raises Unreadable.

    The sizes that an archive declares can be trusted as upper bounds: reading stops there.
    """
    try:
        archive = zipfile.ZipFile(io.BytesIO(data))
    except (*BROKEN, ValueError) as error:
        raise Unreadable(f"The file is damaged: {error}.") from error
    parts = archive.infolist()
    if any(part.flag_bits & ENCRYPTED for part in parts):
        raise Unreadable("The file is encrypted. Save it without a password.")
    _refuse_bomb(parts, limits)
    return archive


def _refuse_bomb(parts: list[zipfile.ZipInfo], limits: ParsingSettings) -> None:
    if len(parts) > ENTRIES_MAX:
        raise Unreadable(f"The file holds {len(parts):,} parts; more than {ENTRIES_MAX:,} are not.")
    expanded = sum(part.file_size for part in parts)
    if expanded > limits.expanded_mb * MIB:
        raise Unreadable(
            f"The file unpacks to {expanded // MIB:,} MiB. At most {limits.expanded_mb:,} MiB are "
            "allowed, see expanded_mb in [plugin.knowledge.parsing]."
        )
    for part in parts:
        if part.file_size > MIB and part.file_size > limits.expansion_ratio * part.compress_size:
            raise Unreadable(
                f"The part '{part.filename}' unpacks to more than {limits.expansion_ratio:,} times "
                "its size, as only a bomb does, see expansion_ratio in [plugin.knowledge.parsing]."
            )


def read_part(archive: zipfile.ZipFile, name: str) -> bytes | None:
    """A part's content; None where there is no such part. Raises Unreadable."""
    if name not in archive.NameToInfo:
        return None
    try:
        return archive.read(name)
    except (*BROKEN, RuntimeError) as error:
        raise Unreadable(f"The part '{name}' of the file is damaged: {error}.") from error
