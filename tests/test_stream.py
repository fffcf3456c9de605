"""Stages in a row, and the stop strings."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hookline.engine import Token
from hookline.stream import Delta, DropSpecial, Held, Pipeline, Stage, StopStrings


class Double:
    """Says everything twice, and goodbye at the end."""

    def feed(self, delta: Delta) -> Iterable[Delta]:
        return [delta, delta]

    def finish(self) -> Iterable[Delta]:
        return [Delta("bye")]


def run(stages: Sequence[Stage], pieces: Iterable[str]) -> tuple[str, Pipeline]:
    pipeline = Pipeline(stages)
    deltas = [delta for piece in pieces for delta in pipeline.feed(Delta(piece))]
    deltas += pipeline.finish()
    return "".join(delta.text for delta in deltas), pipeline


def expected(text: str, stops: Sequence[str]) -> str:
    """The text before the stop string that is completed first, longest first among equals."""
    for end in range(len(text) + 1):
        complete = [stop for stop in stops if text[:end].endswith(stop)]
        if complete:
            return text[: end - max(map(len, complete))]
    return text


def test_stages_run_in_order_and_finish_passes_the_ones_behind() -> None:
    assert run([Double(), Double()], ["a"])[0] == "aaaabyebyebye"


def test_nothing_is_taken_after_the_end() -> None:
    pipeline = Pipeline([StopStrings(["x"])])
    assert [delta.finish for delta in pipeline.feed(Delta("ax"))] == [None, "stop"]
    assert pipeline.feed(Delta("more")) == []
    assert pipeline.finish() == []
    assert pipeline.finished == "stop"


@given(
    st.lists(st.text("abc", max_size=4), max_size=12),
    st.lists(st.text("abc", min_size=1, max_size=3), max_size=3),
)
def test_stops_do_not_depend_on_token_borders(pieces: list[str], stops: list[str]) -> None:
    assert run([StopStrings(stops)], pieces)[0] == expected("".join(pieces), stops)


@pytest.mark.parametrize(
    ("pieces", "stops", "text"),
    [
        (["He", "llo", " wor", "ld"], ["o w"], "Hell"),
        (["ab", "ac"], ["aca"], "abac"),
        (["aab"], ["ab"], "a"),
        (["\n", "\nUser:"], ["\n\nUser:"], ""),
    ],
)
def test_stop_strings(pieces: list[str], stops: list[str], text: str) -> None:
    assert run([StopStrings(stops)], pieces)[0] == text


def test_only_what_could_become_a_stop_is_held_back() -> None:
    stage = StopStrings(["END"])
    assert [delta.text for delta in stage.feed(Delta("the E"))] == ["the "]
    assert [delta.text for delta in stage.feed(Delta("agle"))] == ["E", "agle"]


def test_stops_look_at_the_content_only() -> None:
    pipeline = Pipeline([StopStrings(["x"])])
    assert pipeline.feed(Delta("x", "reasoning")) == [Delta("x", "reasoning")]
    assert pipeline.finished is None


def test_another_channel_lets_go_what_was_held_back() -> None:
    stage = StopStrings(["END"])
    list(stage.feed(Delta("E")))
    later = Delta("hm", "reasoning")
    assert list(stage.feed(later)) == [Delta("E"), later]


def test_tokens_travel_with_their_text() -> None:
    stage = StopStrings(["lo!"])
    hel, lo = Token(1, "Hel"), Token(2, "lo")
    first = list(stage.feed(Delta("Hel", tokens=(hel,))))
    second = list(stage.feed(Delta("lo", tokens=(lo,))))
    rest = list(stage.finish())
    assert [d.tokens for d in (*first, *second, *rest)] == [(hel,), (), (lo,)]


def test_a_finish_stays_with_the_end_of_its_text() -> None:
    held = Held()
    held.add(Delta("ab", finish="stop"))
    assert held.release(1) == [Delta("a")]
    assert held.take() == [Delta("b", finish="stop")]


def test_text_of_control_tokens_is_dropped_and_their_count_stays() -> None:
    token = Token(7, "<|end|>", special=True)
    (delta,) = DropSpecial().feed(Delta("<|end|>", tokens=(token,)))
    assert (delta.text, delta.tokens) == ("", (token,))
    plain = Delta("<|end|>", tokens=(Token(8, "<|end|>"),))
    assert list(DropSpecial().feed(plain)) == [plain]
