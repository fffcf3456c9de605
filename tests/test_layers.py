"""The floors of the house: who may import whom, and what no module may hold."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import hookline

ROOT = Path(hookline.__file__).parent

ORDER = (
    "errors",
    "faults",
    "images",
    "messages",
    "documents",
    "sources",
    "engine",
    "constraints",
    "exchange",
    "turns",
    "room",
    "stream",
    "config",
    "server",
    "hookspecs",
    "about",
    "breaker",
    "plugin",
    "order",
    "contract",
    "python_source",
    "outline",
    "plugin_checks",
    "plugin_sources",
    "budget",
    "isolation",
    "guarded_stage",
    "watchdog",
    "answer_checks",
    "merging",
    "plugins",
    "choice",
    "discovery",
    "survey",
    "store",
    "auth",
    "quota",
    "marks",
    "prompt",
    "metrics",
    "hub",
    "media",
    "model_files",
    "models",
    "engines",
    "api.schema",
    "kernel",
    "api",
    "routes",
    "app",
    "cli",
    "commands",
    "testing",
    "__main__",
)
"""From the ground up: a module imports only what stands before it, or its own package."""

ONLY_IN = {
    "quart": ("api", "app", "testing"),
    "quart_cors": ("api",),
    "werkzeug": ("api",),
    "hypercorn": ("cli.serve", "testing"),
    "uvloop": ("cli.serve",),
    "llama_cpp": ("engines",),
    "click": ("cli",),
    "rich": ("cli",),
    "jinja2": ("prompt", "api.openapi"),
    "pluggy": ("hookspecs", "plugins", "discovery"),
    "prometheus_client": ("metrics",),
    "aiosqlite": ("store",),
    "huggingface_hub": ("hub",),
    "tokenizers": ("engines.exllama_tokenizer",),
    "rapidocr": ("media.ocr",),
    "open_clip": ("media.clip",),
}
"""Libraries that change hands at one place each, so that replacing one is a change there."""

ONCE_A_PROCESS = {"engines.llama_library"}
"""Modules about a native library, which can be set up only once however many servers there are."""

MUTABLE = (ast.List, ast.Dict, ast.Set, ast.ListComp, ast.DictComp, ast.SetComp)
MUTATORS = {"add", "append", "clear", "extend", "insert", "pop", "remove", "setdefault", "update"}


@dataclass(frozen=True)
class Import:
    """One import: of what, on which line, and whether only when needed or for type checkers."""

    name: str
    line: int
    lazy: bool
    typing: bool


@dataclass(frozen=True)
class Module:
    name: str
    tree: ast.Module

    @property
    def floor(self) -> int:
        return floor_of(self.name)

    def imports(self) -> Iterator[Import]:
        yield from _imports(self.tree.body, lazy=False, typing=False)


def _imports(body: list[ast.stmt], *, lazy: bool, typing: bool) -> Iterator[Import]:
    for node in body:
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield Import(alias.name, node.lineno, lazy, typing)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            for alias in node.names:
                yield Import(f"{node.module}.{alias.name}", node.lineno, lazy, typing)
        else:
            function = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
            checking = isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
            inner = [n for n in ast.iter_child_nodes(node) if isinstance(n, ast.stmt)]
            inner += [
                s
                for n in ast.iter_child_nodes(node)
                if hasattr(n, "body") and not isinstance(n, ast.stmt | ast.expr)
                for s in n.body
            ]
            yield from _imports(inner, lazy=lazy or function, typing=typing or checking)


@cache
def modules() -> dict[str, Module]:
    """Every module of the package but its public face, by name without ``hookline.``."""
    found = {}
    for path in sorted(ROOT.rglob("*.py")):
        parts = path.relative_to(ROOT).with_suffix("").parts
        name = ".".join(part for part in parts if part != "__init__")
        if name:
            found[name] = Module(name, ast.parse(path.read_text(encoding="utf-8")))
    return found


def floor_of(name: str) -> int:
    """The place of a module in the order: of itself, or of the package it is in."""
    while name not in ORDER:
        name, dot, _ = name.rpartition(".")
        assert dot, "a new module needs a place in ORDER"
    return ORDER.index(name)


def target(imported: str) -> str | None:
    """The module of ours that an imported name lies in; "" for the public face."""
    if imported.split(".")[0] != "hookline":
        return None
    name = imported.partition(".")[2]
    while name and name not in modules():
        name = name.rpartition(".")[0]
    return name


@pytest.mark.parametrize("name", modules())
def test_imports_go_down_only(name: str) -> None:
    module = modules()[name]
    for imported in module.imports():
        below = target(imported.name)
        if below is None or imported.name == "hookline.__version__":
            continue
        assert below, f"line {imported.line}: import from the module, not from hookline"
        assert floor_of(below) <= module.floor, f"line {imported.line}: {below} is above {name}"


def test_no_module_imports_itself_in_a_circle() -> None:
    graph = {
        name: {
            below
            for imported in module.imports()
            if not (imported.lazy or imported.typing) and (below := target(imported.name))
        }
        - {name}
        for name, module in modules().items()
    }
    assert list(TopologicalSorter(graph).static_order())


@pytest.mark.parametrize("library", ONLY_IN)
def test_a_library_is_used_in_its_place_only(library: str) -> None:
    places = ONLY_IN[library]
    users = [
        name
        for name, module in modules().items()
        for imported in module.imports()
        if imported.name.split(".")[0] == library and not imported.typing
    ]
    assert users, "nobody uses it any more: take it out of ONLY_IN"
    assert not [
        name for name in users if not any(name == p or name.startswith(f"{p}.") for p in places)
    ]


def test_llama_cpp_is_imported_only_when_it_is_needed() -> None:
    eager = [
        name
        for name, module in modules().items()
        for imported in module.imports()
        if imported.name.split(".")[0] == "llama_cpp"
        and not name.startswith("engines.llama")
        and not imported.typing
    ]
    assert not eager


@pytest.mark.parametrize("name", modules())
def test_no_state_at_module_level(name: str) -> None:
    tree = modules()[name].tree
    for node in tree.body:
        if isinstance(node, ast.Assign | ast.AnnAssign) and isinstance(node.value, MUTABLE):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for bound in map(ast.unparse, targets):
                assert bound == "__all__" or bound.isupper(), f"line {node.lineno}: {bound}"
    for inner in ast.walk(tree):
        assert not isinstance(inner, ast.Global), ast.unparse(inner)
        assert not _changes_a_constant(inner), ast.unparse(inner)
        assert name in ONCE_A_PROCESS or not _remembers(inner), "a cache outlives the server"


def _changes_a_constant(node: ast.AST) -> bool:
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        return node.func.attr in MUTATORS and _is_constant(node.func.value)
    if isinstance(node, ast.Assign | ast.AugAssign | ast.Delete):
        targets = [node.target] if isinstance(node, ast.AugAssign) else node.targets
        return any(isinstance(t, ast.Subscript) and _is_constant(t.value) for t in targets)
    return False


def _is_constant(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id.isupper()


def _remembers(node: ast.AST) -> bool:
    if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        return False
    return any(
        "cache" in ast.unparse(d) and "cached_" not in ast.unparse(d) for d in node.decorator_list
    )
