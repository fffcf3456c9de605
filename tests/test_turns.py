"""Turns of a conversation, and what is kept for as long as they go on."""

from __future__ import annotations

from typing import Any

from hookline import Caller, Exchange, Message, Turn, Turns, turn_of
from hookline.api.schema import ChatRequest
from hookline.turns import SECONDS

FIRST = Turn("a", goes_on=False)
LATER = Turn("a", goes_on=True)


def turn(*said: tuple[str, Any], caller: str = "ann", about: str = "all") -> Turn:
    messages = [Message.model_validate({"role": role, "content": text}) for role, text in said]
    request = ChatRequest(messages=messages)
    return turn_of(Exchange("1", 0, "m", request, Caller(caller), messages), about)


def picture(name: str) -> list[dict[str, Any]]:
    url = f"data:image/png;base64,{name}"
    return [{"type": "text", "text": "?"}, {"type": "image_url", "image_url": {"url": url}}]


def test_a_turn_is_the_same_whatever_comes_after_its_question() -> None:
    asked = [("user", "Hello"), ("assistant", "Hi"), ("user", "How high is it?")]
    first = turn(*asked)
    later = turn(*asked, ("assistant", "<call>"), ("tool", "8 m"))
    assert first.id == later.id
    assert not first.goes_on and later.goes_on


def test_what_makes_another_turn() -> None:
    one = turn(("user", "?"))
    others = [
        turn(("user", "!")),
        turn(("system", "Be brief"), ("user", "?")),
        turn(("user", "?"), caller="bob"),
        turn(("user", "?"), about="c:1"),
        turn(("user", picture("AA"))),
        turn(("user", picture("BB"))),
    ]
    assert len({each.id for each in (one, *others)}) == 1 + len(others)


def test_only_a_turn_that_goes_on_finds_what_its_first_message_found() -> None:
    turns = Turns[str](100)
    turns.keep(FIRST, "found", 1)
    assert turns.get(FIRST) is None
    assert turns.get(Turn("b", goes_on=True)) is None
    assert turns.get(LATER) == "found"


def test_it_is_forgotten_in_time() -> None:
    now = 1000.0
    turns = Turns[str](100, now=lambda: now)
    turns.keep(FIRST, "found", 1)
    now += SECONDS - 1
    assert turns.get(LATER) == "found"
    now += 2
    assert turns.get(LATER) is None


def test_the_oldest_makes_room() -> None:
    turns = Turns[str](30)
    for name in "abc":
        turns.keep(Turn(name, goes_on=False), name, 12)
    assert [name for name in "abc" if turns.get(Turn(name, goes_on=True))] == ["b", "c"]
    turns.keep(Turn("d", goes_on=False), "d", 50)
    assert turns.get(Turn("d", goes_on=True)) is None
