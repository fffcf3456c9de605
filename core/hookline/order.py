"""In which order plugins are called: as the operator wrote them, else as they wish.

The configuration names plugins one after the other: that order is never changed. Those that it
does not name (they stand for ``*``) stand where the star is, and move where a wish of theirs or of
another plugin says so. Wishes that run in a circle count for nothing, and the circle is named.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter
from heapq import heapify, heappop, heappush
from itertools import pairwise
from typing import Literal

from hookline.about import EVERY_HOOK, About
from hookline.plugin import Plugin


@dataclass(frozen=True, slots=True)
class Wish:
    """A plugin that would like to be called before or after another."""

    plugin: str
    where: Literal["before", "after"]
    other: str

    @property
    def edge(self) -> tuple[str, str]:
        """Who would be called first, and who later."""
        pair = (self.plugin, self.other)
        return pair if self.where == "before" else (self.other, self.plugin)

    def __str__(self) -> str:
        return f"{self.plugin} {self.where} {self.other}"


@dataclass(slots=True)
class Order:
    """Plugins in the order of their calls, and what became of each wish."""

    names: list[str]
    granted: list[Wish] = field(default_factory=list)
    refused: dict[Wish, str] = field(default_factory=dict)

    def notes(self, name: str) -> list[str]:
        """What became of the wishes of one plugin."""
        told = [f"wishes {w.where} {w.other}" for w in self.granted if w.plugin == name]
        refused = [(w, why) for w, why in self.refused.items() if w.plugin == name]
        return told + [f"wishes {w.where} {w.other}, but {why}" for w, why in refused]


def order_of(plugins: Sequence[Plugin], hook: str) -> Order:
    """The order of plugins for one hook; ``plugins`` are as they stand without wishes."""
    wishes = wishes_of({plugin.name: plugin.about for plugin in plugins}, hook)
    written = [plugin.name for plugin in plugins if plugin.written]
    return ordered([plugin.name for plugin in plugins], written, wishes)


def wishes_of(plugins: Mapping[str, About], hook: str) -> list[Wish]:
    """All wishes that concern a hook."""
    return [wish for name, about in plugins.items() for wish in _wishes(name, about, hook)]


def _wishes(name: str, about: About, hook: str) -> Iterator[Wish]:
    for key in (EVERY_HOOK, hook):
        yield from (Wish(name, "before", other) for other in sorted(about.before.get(key, ())))
        yield from (Wish(name, "after", other) for other in sorted(about.after.get(key, ())))


def ordered(names: Sequence[str], written: Sequence[str], wishes: Iterable[Wish]) -> Order:
    """Grants what can be granted.

    ``names`` are all plugins as they stand without wishes; ``written`` those of them that the
    configuration names, in its order.
    """
    order = Order([*names])
    place = {name: number for number, name in enumerate(written)}
    for wish in wishes:
        first, later = wish.edge
        if wish.other not in order.names:
            order.refused[wish] = f"{wish.other} is not in use"
        elif first in place and later in place and place[first] > place[later]:
            order.refused[wish] = "'plugins' names them the other way round"
        else:
            order.granted.append(wish)
    edges = [*pairwise(written)]
    while circle := _circle(edges, order.granted):
        _refuse(order, circle)
    order.names = _sorted(names, [*edges, *(wish.edge for wish in order.granted)])
    return order


def _circle(edges: Iterable[tuple[str, str]], wishes: Iterable[Wish]) -> list[str]:
    """Plugins that would have to be called before each other, first and last the same."""
    sorter: TopologicalSorter[str] = TopologicalSorter()
    for first, later in [*edges, *(wish.edge for wish in wishes)]:
        sorter.add(later, first)
    try:
        sorter.prepare()
    except CycleError as error:
        circle: list[str] = error.args[1]
        return circle
    return []


def _refuse(order: Order, circle: Sequence[str]) -> None:
    steps = {*pairwise(circle)}
    for wish in [wish for wish in order.granted if wish.edge in steps]:
        order.granted.remove(wish)
        order.refused[wish] = f"that runs in a circle: {' → '.join(circle)}"


def _sorted(names: Sequence[str], edges: Iterable[tuple[str, str]]) -> list[str]:
    """A topological order that stays as near to ``names`` as the edges allow."""
    place = {name: number for number, name in enumerate(names)}
    sorter: TopologicalSorter[str] = TopologicalSorter(dict.fromkeys(names, ()))
    for first, later in edges:
        sorter.add(later, first)
    sorter.prepare()
    result: list[str] = []
    ready = [(place[name], name) for name in sorter.get_ready()]
    heapify(ready)
    while ready:
        _, name = heappop(ready)
        result.append(name)
        sorter.done(name)
        for following in sorter.get_ready():
            heappush(ready, (place[following], following))
    return result
