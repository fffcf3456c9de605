"""A plugin as its source describes it: read, never run.

Sees what is written out: a class and its bases, literal attributes, marked methods, fields of
pydantic models. What is computed when the code runs stays unknown.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from importlib.util import find_spec

from hookline.about import About
from hookline.contract import HookMethod
from hookline.python_source import Class, Function, Source, called, literal

CONTEXT_MANAGERS = frozenset({"asynccontextmanager", "contextmanager"})
"""Decorators that make a plain function of any."""


@dataclass(frozen=True, slots=True)
class OutlineField:
    """A field of settings or of a request, as it is written."""

    annotation: str
    default: str | None
    description: str | None


@dataclass(slots=True)
class Outline:
    """What a plugin's class says: its words about itself, its hooks, its fields and settings."""

    description: str | None
    about: About
    hooks: dict[str, HookMethod] = field(default_factory=dict)
    added: dict[str, HookMethod] = field(default_factory=dict)
    fields: dict[str, OutlineField] = field(default_factory=dict)
    settings: dict[str, OutlineField] | None = None


def outline_of(kind: Class) -> Outline:
    """Everything that a plugin's class says. Raises ValueError like `About.of`."""
    added, fields = kind.linked("hookspecs"), kind.linked("request_fields")
    settings = kind.linked("settings_model")
    return Outline(
        kind.doc or kind.source.doc,
        About.read(kind.literal),
        hooks=marked_in(kind, "hookimpl"),
        added=marked_in(added, "hookspec") if added else {},
        fields=fields_of(fields) if fields else {},
        settings=fields_of(settings) if settings else None,
    )


def marked_in(kind: Class, marker: str) -> dict[str, HookMethod]:
    """The methods with a mark, those of the class itself before those of its bases."""
    methods: dict[str, HookMethod] = {}
    for owner in kind.lineage():
        for node in owner.node.body:
            method = _hook(owner.source, node, marker) if isinstance(node, Function) else None
            if method is not None:
                methods.setdefault(method.name, method)
    return methods


def _hook(source: Source, node: Function, marker: str) -> HookMethod | None:
    names = [source.resolved(called(d)).rpartition(".")[2] for d in node.decorator_list]
    if marker not in names:
        return None
    mark = node.decorator_list[names.index(marker)]
    keywords = mark.keywords if isinstance(mark, ast.Call) else []
    options = frozenset(k.arg for k in keywords if k.arg and literal(k.value, True))
    others = set(names) - {marker}
    colour: bool | None = isinstance(node, ast.AsyncFunctionDef)
    if others:  # a decorator may make anything of a function
        colour = False if others <= CONTEXT_MANAGERS else None
    arguments = [*_arguments(node.args)]
    has_self = bool(others - CONTEXT_MANAGERS) or arguments[:1] == ["self"]
    called_with = tuple(argument for argument in arguments if argument != "self")
    return HookMethod(node.name, colour, called_with, has_self, options)


def _arguments(arguments: ast.arguments) -> Iterator[str]:
    every = (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)
    return (argument.arg for argument in every)


def fields_of(kind: Class) -> dict[str, OutlineField]:
    """The fields of a pydantic model, those of its bases first."""
    fields: dict[str, OutlineField] = {}
    for owner in reversed([*kind.lineage()]):
        for name, value, annotation in owner.assignments():
            if annotation is not None and not name.startswith("_") and name != "model_config":
                fields[name] = _field(annotation, value)
    return fields


def _field(annotation: ast.expr, value: ast.expr | None) -> OutlineField:
    default, description = value, None
    if isinstance(value, ast.Call) and ast.unparse(value.func).endswith("Field"):
        keywords = {keyword.arg: keyword.value for keyword in value.keywords}
        default = value.args[0] if value.args else keywords.get("default")
        default = keywords.get("default_factory") if default is None else default
        about = keywords.get("description")
        description = literal(about, None) if about is not None else None
    shown = ast.unparse(default) if default is not None else None
    return OutlineField(ast.unparse(annotation), None if shown == "..." else shown, description)


def missing_modules(source: Source) -> Iterator[str]:
    """Modules that importing this one needs and that are not installed, by their first name."""
    tops = dict.fromkeys(name.partition(".")[0] for name in needed_by(source))
    for top in tops:
        if top not in sys.stdlib_module_names and not _is_there(top):
            yield top


def missing_names(source: Source) -> Iterator[str]:
    """Names that importing this one takes from the top of Hookline and that are not there."""
    top = source.find("hookline")
    offered = top.names if top is not None else ()
    for name in needed_by(source):
        package, _, inner = name.partition(".")
        asked = package == "hookline" and "." not in inner and inner not in ("", "*")
        if asked and inner not in offered and not _is_there(name):
            yield inner


def needed_by(source: Source) -> Iterator[str]:
    """Everything that importing a module imports from others, through all modules of its own
    package."""
    waiting, seen = [source], {source.name}
    while waiting:
        current = waiting.pop()
        for name in current.needed:
            if name.partition(".")[0] != current.name.partition(".")[0] or "." not in name:
                yield name
                continue
            for inner in (name, name.rpartition(".")[0]):
                if inner not in seen and (found := current.find(inner)) is not None:
                    waiting.append(found)
                seen.add(inner)


def _is_there(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except (ImportError, ValueError):
        return False
