"""Whether a method fits the hook it implements: its name, its arguments, `def` or `async def`."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any

SPEC, IMPLEMENTATION = "hookline_spec", "hookline_impl"
"""The attributes by which pluggy marks methods."""


@dataclass(frozen=True, slots=True)
class HookMethod:
    """A method that is a hook or implements one.

    ``is_async`` is None where that cannot be told from the source alone. ``has_self`` is False
    where the first argument is forgotten. ``options`` are those of its mark that are not at their
    default. ``deprecated`` says, of a hook (``""``) and of its arguments, what to use instead.
    """

    name: str
    is_async: bool | None
    arguments: tuple[str, ...]
    has_self: bool = True
    options: frozenset[str] = frozenset()
    deprecated: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, owner: object, name: str, method: Callable[..., Any], mark: str) -> HookMethod:
        """As it is in a class that was imported."""
        parameters = [*inspect.signature(method).parameters]
        plain = inspect.isfunction(inspect.getattr_static(owner, name, None))
        arguments = tuple(arg for arg in parameters if arg != "self")
        has_self = not plain or parameters[:1] == ["self"]
        marks = getattr(method, mark)
        options = frozenset(option for option, on in marks.items() if on)
        old = {"": marks.get("warn_on_impl"), **(marks.get("warn_on_impl_args") or {})}
        deprecated = {part: str(why) for part, why in old.items() if why}
        colour = inspect.iscoroutinefunction(method) or inspect.isasyncgenfunction(method)
        return cls(name, colour, arguments, has_self, options, deprecated)


HookMethods = Mapping[str, HookMethod]


def marked(owner: object, mark: str) -> dict[str, HookMethod]:
    """The methods of a class that have one of pluggy's marks."""
    return {
        name: HookMethod.of(owner, name, method, mark)
        for name, method in inspect.getmembers(owner, callable)
        if isinstance(getattr(method, mark, None), dict)
    }


def implemented(methods: HookMethods, specs: HookMethods) -> dict[str, HookMethod]:
    """The methods without those that are optional and whose hook nobody has."""
    return {
        name: method
        for name, method in methods.items()
        if name in specs or "optionalhook" not in method.options
    }


def first_problem(methods: Iterable[HookMethod], specs: HookMethods) -> str | None:
    """What is wrong with the first method that does not fit, in one line."""
    return next(filter(None, (problem(method, specs) for method in methods)), None)


def problem(method: HookMethod, specs: HookMethods) -> str | None:
    """Why a method cannot be called as what it is called, in one line that says what to change."""
    name, spec = method.name, specs.get(method.name)
    if spec is None:
        close = get_close_matches(name, specs, 1)
        return f"there is no hook '{name}'" + (f"; did you mean '{close[0]}'?" if close else "")
    if method.options & {"wrapper", "hookwrapper"}:
        return f"'{name}' is a wrapper; plugins are called one by one, so wrappers cannot work"
    if method.options & {"tryfirst", "trylast"}:
        return f"'{name}' is marked tryfirst or trylast; say 'before' or 'after' in the class"
    if not method.has_self:
        return f"'{name}' needs 'self' as its first argument"
    if name == "lifespan" and method.is_async:
        return "'lifespan' needs '@asynccontextmanager' between '@hookimpl' and 'async def'"
    if method.is_async is not None and method.is_async != spec.is_async:
        return f"'{name}' must be written with '{'async def' if spec.is_async else 'def'}'"
    unknown = [arg for arg in method.arguments if arg not in spec.arguments]
    if unknown:
        offered = ", ".join(spec.arguments) or "no arguments"
        return f"'{name}' takes '{unknown[0]}', but the hook offers only {offered}"
    return None


def deprecations(methods: Iterable[HookMethod], specs: HookMethods) -> Iterator[str]:
    """What the methods use that will go away, with what to use instead."""
    for method in methods:
        spec = specs[method.name]
        for part, advice in spec.deprecated.items():
            if not part:
                yield f"'{method.name}' will go away: {advice}"
            elif part in method.arguments:
                yield f"'{part}' of '{method.name}' will go away: {advice}"


def refused_spec(added: HookMethods, specs: HookMethods) -> str | None:
    """Why hooks that a plugin adds cannot be taken, in one line."""
    if taken := specs.keys() & added.keys():
        return f"adds a hook '{min(taken)}', which exists already"
    if later := [name for name, spec in added.items() if spec.is_async]:
        return f"adds a hook '{later[0]}', which must be written with 'def'"
    if first := [name for name, spec in added.items() if "firstresult" in spec.options]:
        return f"adds a hook '{first[0]}' with firstresult, but every plugin is asked"
    return None
