"""Where plugins come from: packages that announce them, and single files in a folder."""

from __future__ import annotations

import importlib.util
import inspect
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from types import ModuleType
from typing import Any

from hookline.config import Settings
from hookline.contract import IMPLEMENTATION, marked
from hookline.errors import ConfigError, PluginError
from hookline.outline import marked_in
from hookline.python_source import Class, Source, Sources

GROUP = "hookline.plugins"
"""The entry point group that announces plugins."""

OWN = "hookline"
"""The distribution whose plugins are built in."""

ONE_OF_SEVERAL = "Plugin"
"""The name of the plugin's class in a file that has several with hooks."""

NAME = re.compile(r"[a-z][a-z0-9_-]*")
"""What a plugin may be called."""


@dataclass(frozen=True, slots=True)
class PluginSource:
    """A plugin that can be loaded. ``problem`` says in one line why it cannot.

    ``load`` gives the class. ``read`` gives the source of its module and, where it is written out
    there, of the class, without running anything: Nones where there is none; raises Unreadable.
    ``file`` is that of a single-file plugin.
    """

    name: str
    load: Callable[[], Any]
    read: Callable[[], tuple[Source | None, Class | None]] = lambda: (None, None)
    distribution: str | None = None
    version: str | None = None
    file: Path | None = None
    problem: str | None = None

    @property
    def built_in(self) -> bool:
        """Whether it comes with the server."""
        return self.distribution == OWN


def all_sources(settings: Settings) -> dict[str, PluginSource]:
    """Every plugin that there is, by name: installed ones, then files. Raises ConfigError."""
    found = installed()
    for source in in_folder(settings.plugin_dir):
        name = source.name if source.name not in found else f"{source.name}.py"
        found[name] = source if name == source.name else _hidden(name, source)
    return found


def _hidden(name: str, source: PluginSource) -> PluginSource:
    problem = f"an installed plugin is called '{source.name}' too; rename {source.file}"
    return PluginSource(name, _refused, file=source.file, problem=problem)


def _refused() -> Any:
    raise PluginError("this plugin cannot be loaded")


# Packages


def installed() -> dict[str, PluginSource]:
    """Every announced plugin by name."""
    found: dict[str, PluginSource] = {}
    for entry in entry_points(group=GROUP):
        source = _announced(entry)
        other = found.setdefault(entry.name, source)
        if other.distribution != source.distribution:
            found[entry.name] = PluginSource(entry.name, _refused, problem=_twice(other, source))
    return found


def _announced(entry: EntryPoint) -> PluginSource:
    def read() -> tuple[Source | None, Class | None]:
        source = Sources().find(entry.module)
        return source, source.class_of(entry.attr) if source is not None else None

    dist = entry.dist
    name, version = (dist.name, dist.version) if dist else (None, None)
    return PluginSource(entry.name, entry.load, read, name, version)


def _twice(one: PluginSource, other: PluginSource) -> str:
    names = sorted([one.distribution or "?", other.distribution or "?"])
    return f"two packages announce it: {' and '.join(names)}; uninstall one of them"


# Single files


def in_folder(folder: Path | None) -> Iterator[PluginSource]:
    """The files of a folder, by their names. Raises ConfigError where there is no such folder.

    Those that begin with ``_`` are for the others to import.
    """
    if folder is None:
        return
    if not folder.is_dir():
        raise ConfigError(f"plugin_dir: {folder} is no folder.")
    for file in sorted(folder.glob("*.py")):
        if not file.name.startswith("_"):
            yield _of_file(file)


def _of_file(file: Path) -> PluginSource:
    name = file.stem
    problem = None
    if not NAME.fullmatch(name):
        problem = f"a plugin's name has small letters, digits, '-' and '_' only; rename {file}"
    return PluginSource(
        name, lambda: _load_file(file), lambda: _read_file(file), file=file, problem=problem
    )


def _load_file(file: Path) -> type:
    module = _import_file(file)
    kinds = [
        kind
        for kind in vars(module).values()
        if inspect.isclass(kind)
        and kind.__module__ == module.__name__
        and marked(kind, IMPLEMENTATION)
    ]
    name = _the_one([kind.__name__ for kind in kinds])
    return next(kind for kind in kinds if kind.__name__ == name)


def _import_file(file: Path) -> ModuleType:
    name = f"hookline_plugin_file_{file.stem}"
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        raise PluginError(f"{file} cannot be imported")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # where dataclasses and pydantic look annotations up
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def _read_file(file: Path) -> tuple[Source, Class]:
    source: Source = Sources().at(file)
    kinds = [Class(source, node) for node in source.classes()]
    kinds = [kind for kind in kinds if marked_in(kind, "hookimpl")]
    name = _the_one([kind.node.name for kind in kinds])
    return source, next(kind for kind in kinds if kind.node.name == name)


def _the_one(names: Iterable[str]) -> str:
    """The plugin's class among those with hooks. Raises PluginError where that is not clear."""
    found = [*names]
    if ONE_OF_SEVERAL in found or len(found) == 1:
        return ONE_OF_SEVERAL if ONE_OF_SEVERAL in found else found[0]
    if not found:
        raise PluginError("it has no class with a method marked hookimpl")
    raise PluginError(
        f"several of its classes have hooks ({', '.join(found)}); call the plugin's "
        f"'{ONE_OF_SEVERAL}'"
    )
