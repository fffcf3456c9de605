"""What was found for a turn, kept for as long as the turn goes on."""

from __future__ import annotations

from hookline_websearch.finding import Finding, fitting
from hookline_websearch.page import Look, Page
from hookline_websearch.passages import Passage
from hookline_websearch.provider import Hit
from hookline_websearch.research import Outcome, Source


def source(number: int, words: int = 3) -> Source:
    url = f"https://a.example/{number}"
    passage = Passage(0, 0, "word " * words)
    return Source(Hit(url), Page(url, url, text="word " * 1000), [passage])


def finding(*numbers: int, picture: int = 0) -> Finding:
    looks = [Look(Page("https://a.example/"), screenshot=b"P" * picture)]
    return Finding(Outcome([source(number) for number in numbers], ["q"]), looks)


def test_what_is_kept_of_a_finding() -> None:
    slim = finding(1, 2, picture=500).slim()
    assert [each.text for each in slim.outcome.sources] == [source(1).text, source(2).text]
    pages = [each.page for each in slim.outcome.sources]
    assert [page and (page.final_url, page.text) for page in pages] == [
        ("https://a.example/1", ""),
        ("https://a.example/2", ""),
    ]
    assert 500 < slim.size < 10_000
    assert slim.size - finding(1, 2).slim().size == 500
    assert finding().is_in_vain and not slim.is_in_vain


def test_the_first_sources_that_fit_are_kept() -> None:
    sources = [source(1, 2), source(2, 50), source(3, 1)]

    def count(text: str) -> int:
        return text.count("word")

    assert fitting(sources, 100, count) == sources
    assert fitting(sources, 51, count) == sources[:1]
    assert fitting(sources, 0, count) == []
