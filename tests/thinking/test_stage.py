"""The stage alone: however the text is cut, the same thought and the same answer come out."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hookline import Delta, Token, Usage
from hookline_thinking.stage import HiddenThoughtStage, ThoughtStage
from hookline_thinking.tags import Tags

TAGS = Tags("<think>", "</think>", None, native=True)
FOREIGN = Tags("<think>", "</think>", None, native=False)
BITS = ["<think>", "</think>", "<", "</", "think>", " ", "\n", "Hm", "Yes", "7 < 8", "é", "<thin"]

texts = st.lists(st.sampled_from(BITS), max_size=8).map("".join)


def run(stage: ThoughtStage, pieces: Sequence[str]) -> tuple[str, str]:
    """Reasoning and content of an answer that comes in these pieces, a token each."""
    deltas: list[Delta] = []
    for number, piece in enumerate(pieces):
        deltas += stage.feed(Delta(piece, tokens=(Token(number, piece),)))
    deltas += stage.finish()
    reasoning = "".join(delta.text for delta in deltas if delta.channel == "reasoning")
    return reasoning, "".join(delta.text for delta in deltas if delta.channel == "content")


def cut(text: str, places: Sequence[int]) -> list[str]:
    edges = sorted({0, len(text), *(place % (len(text) + 1) for place in places)})
    return [text[a:b] for a, b in pairwise(edges)]


def whole(text: str) -> tuple[str, str]:
    """What an asked-for thought is, said in one line each."""
    stripped = text.lstrip()
    while stripped.startswith("<think>"):
        stripped = stripped.removeprefix("<think>").lstrip()
    thought, closed, answer = stripped.partition("</think>")
    if not closed and stripped and "<think>".startswith(stripped):
        thought = ""
    if not closed:
        tails = [n for n in range(len(thought) + 1) if "</think>".startswith(thought[n:])]
        thought = thought[: tails[0]]
    return thought.strip(), answer.lstrip()


@given(texts, st.lists(st.integers(0, 60), max_size=8))
def test_a_thought_does_not_depend_on_where_it_is_cut(text: str, places: list[int]) -> None:
    expected = whole(text)
    assert run(ThoughtStage(TAGS, Usage()), [text] if text else []) == expected
    assert run(ThoughtStage(TAGS, Usage()), list(text)) == expected
    assert run(ThoughtStage(TAGS, Usage()), cut(text, places)) == expected


@given(texts, st.lists(st.integers(0, 60), max_size=8))
def test_hidden_or_shown_the_answer_is_the_same(text: str, places: list[int]) -> None:
    pieces = cut(f"<think>{text}</think>{text}", places)
    _, shown = run(ThoughtStage(TAGS, Usage()), pieces)
    for tags in (TAGS, FOREIGN):
        assert run(HiddenThoughtStage(tags, Usage()), pieces) == ("", shown)


@given(texts.filter(lambda text: not text.lstrip().startswith("<think>")))
def test_an_answer_without_a_thought_is_left_alone(text: str) -> None:
    assert run(HiddenThoughtStage(TAGS, Usage()), list(text)) == ("", text)


@given(texts.filter(lambda text: "</think>" not in text))
def test_a_model_that_cannot_think_may_write_the_tag(text: str) -> None:
    usage = Usage()
    said = f"<think>{text}"
    assert run(HiddenThoughtStage(FOREIGN, usage), list(said)) == ("", said)
    assert usage.reasoning_tokens == 0
    assert run(HiddenThoughtStage(TAGS, Usage()), list(said)) == ("", "")


@pytest.mark.parametrize("kind", [ThoughtStage, HiddenThoughtStage])
def test_the_tokens_of_the_thought_are_counted(kind: type[ThoughtStage]) -> None:
    usage = Usage()
    run(kind(TAGS, usage), ["<thi", "nk>", "a", " b", "</thi", "nk>", "\n", "c", "d"])
    assert usage.reasoning_tokens == 6


def test_a_tag_that_is_repeated_is_no_thought() -> None:
    pieces = ["<think>", "\n", "<thi", "nk>", "\n", "Hm", "</think>", "Yes"]
    assert run(ThoughtStage(TAGS, Usage()), pieces) == ("Hm", "Yes")
    assert run(HiddenThoughtStage(TAGS, Usage()), pieces) == ("", "Yes")


def test_text_comes_as_soon_as_it_is_no_part_of_a_tag() -> None:
    stage = ThoughtStage(TAGS, Usage())
    steps = [("a", "a"), (" <", ""), ("/x", " </x"), ("</think", ""), (">", ""), ("yes", "yes")]
    for piece, comes in steps:
        assert "".join(delta.text for delta in stage.feed(Delta(piece))) == comes


def test_other_channels_and_an_early_end_pass() -> None:
    stage = ThoughtStage(TAGS, Usage())
    other = Delta("x", "tool_call")
    assert list(stage.feed(other)) == [other]
    ended = list(stage.feed(Delta("Hm ", finish="stop")))
    assert [(delta.text, delta.finish) for delta in ended] == [("Hm", None), ("", "stop")]
