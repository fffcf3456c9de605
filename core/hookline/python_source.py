"""Python source as syntax trees: modules and classes, found and read without running anything."""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from importlib.machinery import PathFinder
from importlib.util import find_spec
from pathlib import Path
from typing import Any

Function = ast.FunctionDef | ast.AsyncFunctionDef
DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef)

NOT_READ = frozenset({*sys.stdlib_module_names, "pydantic"})
"""Packages in which nothing of a plugin is written."""


class Unreadable(Exception):
    """The source cannot be read; the text says why, in one line."""


class Source:
    """The source of one module, parsed. Raises Unreadable where it is no Python."""

    def __init__(self, name: str, path: Path, find: Callable[[str], Source | None]) -> None:
        self.name, self.path, self.find = name, path, find
        try:
            self.tree = ast.parse(path.read_bytes(), str(path))
        except SyntaxError as error:
            raise Unreadable(f"{path}, line {error.lineno}: SyntaxError: {error.msg}") from None
        except (OSError, ValueError) as error:
            raise Unreadable(f"{path} cannot be read: {error}") from None

    @cached_property
    def imported(self) -> dict[str, str]:
        """What names that are imported stand for, as dotted paths; also those for type checkers."""
        return {**self._imports(_for_types(self.tree)), **self._imports(self.tree.body)}

    @property
    def needed(self) -> list[str]:
        """What importing the module imports in any case: not in functions, not in ``try``."""
        return [*self._imports(self.tree.body).values()]

    def _imports(self, body: Iterable[ast.stmt]) -> dict[str, str]:
        found: dict[str, str] = {}
        for node in body:
            if isinstance(node, ast.Import):
                found |= {name.asname or name.name: name.name for name in node.names}
            elif isinstance(node, ast.ImportFrom):
                module = self._absolute(node)
                found |= {name.asname or name.name: f"{module}.{name.name}" for name in node.names}
        return found

    def _absolute(self, node: ast.ImportFrom) -> str:
        if not node.level:
            return node.module or ""
        parts = self.name.split(".")
        is_package = self.path.name == "__init__.py"
        parent = parts[: len(parts) - node.level + is_package]
        return ".".join([*parent, node.module] if node.module else parent)

    @property
    def doc(self) -> str | None:
        """The docstring."""
        return ast.get_docstring(self.tree)

    def resolved(self, node: ast.expr) -> str:
        """The dotted path that a name or attribute stands for."""
        text = ast.unparse(node)
        first, dot, rest = text.partition(".")
        return self.imported.get(first, first) + dot + rest

    @property
    def names(self) -> set[str]:
        """The names that the module has, as far as they are written out."""
        targets = [t for n in self.tree.body if isinstance(n, ast.Assign) for t in n.targets]
        assigned = {target.id for target in targets if isinstance(target, ast.Name)}
        defined = {n.name for n in self.tree.body if isinstance(n, (*DEFINITIONS, ast.ClassDef))}
        return {*self.imported, *assigned, *defined}

    def classes(self) -> Iterator[ast.ClassDef]:
        """The classes of the module."""
        return (node for node in self.tree.body if isinstance(node, ast.ClassDef))

    def class_of(self, name: str) -> Class | None:
        """The class that a name of this module stands for, wherever it is written."""
        source: Source | None = self
        seen = set()
        while source is not None and (source.path, name) not in seen:
            seen.add((source.path, name))
            for node in source.classes():
                if node.name == name:
                    return Class(source, node)
            module, _, name = source.imported.get(name, "").rpartition(".")
            source = self.find(module) if module else None
        return None


def _for_types(tree: ast.Module) -> Iterator[ast.stmt]:
    """The statements that only type checkers see."""
    for node in tree.body:
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            yield from node.body


@dataclass(frozen=True, slots=True)
class Class:
    """A class in its source."""

    source: Source
    node: ast.ClassDef

    def lineage(self) -> Iterator[Class]:
        """The class and those of its bases whose source there is, nearest first."""
        waiting: list[Class] = [self]
        seen: list[ast.ClassDef] = []
        while waiting:
            kind = waiting.pop(0)
            if kind.node not in seen:
                seen.append(kind.node)
                yield kind
                waiting[:0] = kind.bases()

    def bases(self) -> list[Class]:
        """The classes that it inherits from and whose source there is."""
        plain = [b.value if isinstance(b, ast.Subscript) else b for b in self.node.bases]
        found = [self.source.class_of(ast.unparse(base)) for base in plain]
        return [kind for kind in found if kind is not None]

    def attribute(self, name: str) -> tuple[Class, ast.expr] | None:
        """The value of an attribute, and the class that has it."""
        for owner in self.lineage():
            for target, value, _ in owner.assignments():
                if target == name and value is not None:
                    return owner, value
        return None

    def assignments(self) -> Iterator[tuple[str, ast.expr | None, ast.expr | None]]:
        """Each attribute: name, value, annotation."""
        for node in self.node.body:
            if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                yield node.target.id, node.value, node.annotation
            elif isinstance(node, ast.Assign):
                for target in node.targets:
                    if isinstance(target, ast.Name):
                        yield target.id, node.value, None

    def literal(self, name: str, default: Any) -> Any:
        """An attribute's value where it is written out, else the default."""
        found = self.attribute(name)
        return default if found is None else literal(found[1], default)

    def linked(self, name: str) -> Class | None:
        """The class that an attribute names."""
        found = self.attribute(name)
        return found[0].source.class_of(ast.unparse(found[1])) if found else None

    @property
    def doc(self) -> str | None:
        """The docstring."""
        return ast.get_docstring(self.node)


def called(node: ast.expr) -> ast.expr:
    """What a decorator is, without its arguments."""
    return node.func if isinstance(node, ast.Call) else node


def literal(node: ast.expr, default: Any) -> Any:
    """The value of an expression that is written out, also within ``frozenset(…)`` and its like."""
    if isinstance(node, ast.Call) and ast.unparse(node.func) in ("frozenset", "set", "tuple"):
        return literal(node.args[0], default) if node.args else ()
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError):
        return default


class Sources:
    """Finds the sources of installed modules; each is read once."""

    def __init__(self) -> None:
        self._read: dict[str, Source | None] = {}

    def find(self, module: str) -> Source | None:
        """A module by its dotted name; None where it has no source. Raises Unreadable."""
        if module not in self._read:
            self._read[module] = None  # a circle of imports ends here
            top = module.partition(".")[0]
            path = _path(module) if top not in NOT_READ else None
            if path is not None:
                self._read[module] = Source(module, path, self.find)
        return self._read[module]

    def at(self, path: Path) -> Source:
        """A single file. Raises Unreadable."""
        return Source(path.stem, path, self.find)


def _path(module: str) -> Path | None:
    """The file of a module, found without importing the packages that it is in."""
    top, *inner = module.split(".")
    try:
        spec = find_spec(top)
    except (ImportError, ValueError):
        return None
    name = top
    for part in inner:
        if spec is None or spec.submodule_search_locations is None:
            return None
        name = f"{name}.{part}"
        spec = PathFinder.find_spec(name, spec.submodule_search_locations)
    origin = spec.origin if spec is not None else None
    return Path(origin) if origin and origin.endswith(".py") else None
