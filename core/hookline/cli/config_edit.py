"""Edits of the configuration file by commands: what they do not touch stays as it is."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Sequence
from pathlib import Path

import tomlkit
from tomlkit.exceptions import TOMLKitError
from tomlkit.items import Array

from hookline.errors import ConfigError

COMMENTED = re.compile(r"^#[ \t]*plugins[ \t]*=[ \t]*\[.*\][ \t]*\r?\n?", re.MULTILINE)
"""The list of plugins as a comment, as ``hookline config init`` writes it."""

HEADER = re.compile(r"^[ \t]*\[{1,2}(?P<path>[^\[\]\n]+)\]{1,2}[ \t]*(#.*)?$", re.MULTILINE)
"""The line that begins a table."""


def rewrite(file: Path, edit: Callable[[str], str]) -> None:
    """Edits a file, which is made where there is none. Raises ConfigError."""
    try:
        text = edit(file.read_text(encoding="utf-8-sig") if file.exists() else "")
        staged = file.with_name(f".{file.name}.new")
        staged.write_text(text, encoding="utf-8")
        if file.exists():
            staged.chmod(file.stat().st_mode)
        staged.replace(file.resolve())
    except OSError as error:
        raise ConfigError(f"{file} cannot be written: {error.strerror}") from None
    except TOMLKitError as error:
        raise ConfigError(f"{file}: {error}") from None


def with_entries(text: str, entries: Sequence[str]) -> str:
    """The file with this list as ``plugins``: where the list stands, or stands as a comment."""
    document = tomlkit.parse(text)
    if isinstance(array := document.get("plugins"), Array):
        _edit(array, entries)
        return tomlkit.dumps(document)
    first_table, comment = HEADER.search(text), COMMENTED.search(text)
    if comment and not (first_table and first_table.start() < comment.start()):
        line = tomlkit.dumps({"plugins": [*entries]})
        return text[: comment.start()] + line + text[comment.end() :]
    document["plugins"] = [*entries]
    return tomlkit.dumps(document)


def _edit(array: Array, entries: Sequence[str]) -> None:
    """Changes an array item by item, so that its lines and comments stay."""
    for index in reversed(range(len(array))):
        if array[index] not in entries:
            del array[index]
    for entry in entries:
        if entry not in array:
            array.append(entry)


def without_table(text: str, name: str, file: Path) -> str:
    """The file with a plugin's tables as comments. Raises ConfigError where its settings are
    written in another way."""
    lines, inside = text.splitlines(keepends=True), False
    for number, line in enumerate(lines):
        if header := HEADER.match(line):
            path = re.sub(r"[\s\"']", "", header["path"]).split(".")
            inside = path[:2] == ["plugin", name]
        if inside and line.strip() and not line.startswith("#"):
            lines[number] = f"# {line}"
    edited = "".join(lines)
    if not _is_without(edited, name):
        raise ConfigError(f"{file}: take the settings of the plugin '{name}' out by hand.")
    return edited


def _is_without(text: str, name: str) -> bool:
    try:
        return name not in tomllib.loads(text).get("plugin", {})
    except tomllib.TOMLDecodeError:
        return False
