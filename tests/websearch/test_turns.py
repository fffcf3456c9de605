"""What was found for a turn, kept for as long as the turn goes on."""

from __future__ import annotations

from hookline_websearch.page import Look, Page
from hookline_websearch.passages import Passage
from hookline_websearch.provider import Hit
from hookline_websearch.research import Outcome, Source
from hookline_websearch.turns import SECONDS, Finding, Turn, Turns, fitting


def source(number: int, words: int = 3) -> Source:
    url = f"https://a.example/{number}"
    passage = Passage(0, 0, "word " * words)
    return Source(Hit(url), Page(url, url, text="word " * 1000), [passage])


def finding(*numbers: int, picture: int = 0) -> Finding:
    looks = [Look(Page("https://a.example/"), screenshot=b"P" * picture)]
    return Finding(Outcome([source(number) for number in numbers], ["q"]), looks)


def test_only_a_turn_that_goes_on_finds_what_its_first_message_found() -> None:
    turns = Turns()
    turns.keep(Turn("a", goes_on=False), finding(1))
    assert turns.get(Turn("a", goes_on=False)) is None
    assert turns.get(Turn("b", goes_on=True)) is None
    found = turns.get(Turn("a", goes_on=True))
    assert found is not None
    (kept,) = found.outcome.sources
    assert kept.page is not None
    assert (kept.page.final_url, kept.page.text) == ("https://a.example/1", "")
    assert kept.text == source(1).text


def test_it_is_forgotten_in_time() -> None:
    now = 1000.0
    turns = Turns(now=lambda: now)
    turns.keep(Turn("a", goes_on=False), finding(1))
    now += SECONDS - 1
    assert turns.get(Turn("a", goes_on=True)) is not None
    now += 2
    assert turns.get(Turn("a", goes_on=True)) is None


def test_the_oldest_makes_room() -> None:
    turns = Turns(most=30_000)
    for name in "abc":
        turns.keep(Turn(name, goes_on=False), finding(1, picture=8_000))
    known = [name for name in "abc" if turns.get(Turn(name, goes_on=True))]
    assert known == ["b", "c"]
    turns.keep(Turn("d", goes_on=False), finding(1, picture=50_000))
    assert turns.get(Turn("d", goes_on=True)) is None


def test_the_first_sources_that_fit_are_kept() -> None:
    sources = [source(1, 2), source(2, 50), source(3, 1)]

    def count(text: str) -> int:
        return text.count("word")

    assert fitting(sources, 100, count) == sources
    assert fitting(sources, 51, count) == sources[:1]
    assert fitting(sources, 0, count) == []
