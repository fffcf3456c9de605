"""In which order plugins are called: the operator's, else as they wish."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from hookline import Caller, Exchange, hookimpl
from hookline.about import About
from hookline.config import Settings
from hookline.discovery import load_plugins
from hookline.order import Order, Wish, order_of, ordered
from hookline.plugin import Plugin

ALL = ["a", "b", "c", "d"]


class Request(BaseModel):
    pass


def order(*wishes: str, written: str = "", names: str = "a b c d") -> Order:
    parsed = [Wish(*wish.split()) for wish in wishes]  # type: ignore[arg-type]
    return ordered(names.split(), written.split(), parsed)


@pytest.mark.parametrize(
    ("wishes", "expected"),
    [
        ([], "a b c d"),
        (["d before a"], "b c d a"),
        (["a after c"], "b c a d"),
        (["a before b", "b after a"], "a b c d"),
        (["d before c", "c before b"], "a d c b"),
    ],
)
def test_wishes_are_granted_and_the_rest_stays(wishes: list[str], expected: str) -> None:
    found = order(*wishes)
    assert found.names == expected.split()
    assert not found.refused


def test_what_the_operator_wrote_wins() -> None:
    found = order("d before a", written="a d")
    assert found.names == ALL
    (why,) = found.refused.values()
    assert why == "'plugins' names them the other way round"


def test_a_wish_may_move_one_that_is_written_and_one_that_is_not() -> None:
    assert order("d before a", written="d").names == ["b", "c", "d", "a"]
    assert order("a after d", written="d").names == ["b", "c", "d", "a"]


def test_wishes_about_others_that_are_not_in_use_are_told() -> None:
    found = order("a after z")
    assert found.names == ALL
    assert found.refused == {Wish("a", "after", "z"): "z is not in use"}


def test_circles_are_named_and_harm_nobody_else() -> None:
    found = order("a before b", "b before a", "d before c")
    assert found.names == ["a", "b", "d", "c"]
    assert {str(wish) for wish in found.refused} == {"a before b", "b before a"}
    assert all("circle: " in why and "a → b" in f"{why} → b" for why in found.refused.values())


def test_a_circle_through_the_operator_s_order_is_broken_at_the_wishes() -> None:
    found = order("c before a", "c after b", written="a b")
    assert found.names.index("a") < found.names.index("b")
    assert found.refused


def test_a_plugin_before_itself_is_a_circle() -> None:
    assert order("a before a").names == ALL


name = st.sampled_from(ALL)
wish = st.builds(Wish, name, st.sampled_from(["before", "after"]), name)


@given(st.lists(wish, max_size=8), st.lists(name, unique=True))
def test_every_order_keeps_what_it_granted(wishes: list[Wish], written: list[str]) -> None:
    found = ordered(ALL, written, wishes)
    place = {name: number for number, name in enumerate(found.names)}
    assert sorted(found.names) == ALL
    assert [name for name in found.names if name in written] == written
    for granted in found.granted:
        first, later = granted.edge
        assert place[first] < place[later]
    assert {*found.granted} | {*found.refused} == {*wishes}


def test_a_wish_for_one_hook_holds_for_that_one() -> None:
    plugins = [
        Plugin("a", about=About(after={"transform": frozenset({"b"})})),
        Plugin("b"),
    ]
    assert order_of(plugins, "transform").names == ["b", "a"]
    assert order_of(plugins, "admit").names == ["a", "b"]
    assert order_of(plugins, "transform").notes("a") == ["wishes after b"]


async def test_plugins_are_called_as_they_wish() -> None:
    calls: list[str] = []

    class First:
        @hookimpl
        async def admit(self) -> None:
            calls.append("first")

    class Second:
        before = frozenset({"first"})

        @hookimpl
        async def admit(self) -> None:
            calls.append("second")

    loaded = load_plugins(Settings(plugins=[]), extra={"first": First(), "second": Second()})
    await loaded.admit(Exchange("id", 0, "model", Request(), Caller()))
    assert calls == ["second", "first"]
