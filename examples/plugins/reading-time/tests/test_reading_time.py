"""The field in both kinds of answer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hookline.testing import LocalServer, PluginContractTests
from hookline_reading_time import ReadingTime


def test_plain(server: LocalServer, chat: Callable[..., Any]) -> None:
    server.use(ReadingTime, words_per_minute=60)
    server.says("Four", " words", " are", "  here")
    assert chat().body["reading_time"] == {"words": 4, "seconds": 4.0}


def test_streamed(server: LocalServer, stream: Callable[..., Any]) -> None:
    server.use(ReadingTime)
    server.says("Un", "do", " it", "!")
    answer = stream()
    assert answer.fields["reading_time"]["words"] == 2
    assert "reading_time" in answer.chunks[-1]


def test_choices_are_added_up(server: LocalServer, chat: Callable[..., Any]) -> None:
    server.use(ReadingTime)
    server.says("Two", " words")
    assert chat(n=3).body["reading_time"]["words"] == 6


class TestContract(PluginContractTests):
    plugin = ReadingTime
    bad_settings = [{"words_per_minute": 0}]
