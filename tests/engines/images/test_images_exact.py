"""Images: the same bits alone and beside others, with and without reuse, and as the library's own
helper gives them. Compared on logits."""

from __future__ import annotations

import ctypes
import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from hookline.engine import Job
from hookline.engines.pace import Pace
from hookline.images import Image

pytestmark = pytest.mark.model

Picture = Callable[..., Image]

BEGIN, END = "<|im_start|>user\n", "<|im_end|>\n<|im_start|>assistant\n"


def by_the_library(seeing: Any, *parts: str | Image) -> Any:
    """The logits after a prompt, read by mtmd's helper in sequence 2."""
    projector = seeing.generator.parts.looks.projector
    api, context = projector._api, seeing.generator.context
    context.cut(2, 0)
    rows = (ctypes.POINTER(api.mtmd_input_part) * len(parts))()
    kept: list[Any] = []
    for place, part in enumerate(parts):
        row = api.mtmd_input_part()
        if isinstance(part, Image):
            pixels = (ctypes.c_uint8 * len(part.rgb)).from_buffer_copy(part.rgb)
            row.bitmap = api.mtmd_bitmap_init(part.width, part.height, pixels)
            kept.append(row.bitmap)
        else:
            text = api.mtmd_input_text(part.encode(), len(part.encode()), False, True)
            row.text = ctypes.pointer(text)
        rows[place] = ctypes.pointer(row)
    chunks = api.mtmd_input_chunks_init()
    assert api.mtmd_tokenize_from_parts(projector._handle, chunks, rows, len(parts), False) == 0
    end = ctypes.c_int32()
    eval_chunks = api.mtmd_helper_eval_chunks
    args = (projector._handle, context._handle, chunks, 0, 2, 256, True, ctypes.byref(end))
    assert eval_chunks(*args) == 0
    logits = context._logits(1)[0].copy()
    api.mtmd_input_chunks_free(chunks)
    for bitmap in kept:
        api.mtmd_bitmap_free(bitmap)
    context.cut(2, 0)
    return logits


def test_prompts_are_read_as_the_library_reads_them(
    seeing: Any, player: Any, picture: Picture
) -> None:
    parts = (BEGIN, picture(1), "and this, which is wider?", picture(2, 168, 56), END)
    ours = player.alone(seeing.job(*parts, tokens=1))
    assert np.array_equal(ours.logits[0], by_the_library(seeing, *parts))


def conversation(picture: Picture, number: int) -> tuple[str | Image, ...]:
    """Prompts that begin alike and differ in their images."""
    if number == 0:
        return (BEGIN, "Only words here, no picture at all.", END)
    if number == 1:
        return (BEGIN, picture(1), "What is it?", END)
    return (BEGIN, picture(1), picture(number), f"Compare the {number}.", END)


def test_jobs_with_images_get_the_answers_they_get_alone(
    seeing: Any, player: Any, picture: Picture
) -> None:
    def jobs() -> list[Job]:
        return [seeing.job(*conversation(picture, i), tokens=2 + 2 * i) for i in (2, 0, 1)]

    alone = [player.alone(job) for job in jobs()]
    player.forget()
    together = player.play(*jobs(), arrivals={1: 2, 2: 4})
    assert all(map(lambda one, other: one.same_as(other), together, alone))
    again = player.play(*jobs())
    assert all(map(lambda one, other: one.same_as(other), again, alone))
    assert all(one.cached > 0 for one in again)
    assert [one.run.timings().vision_ms for one in again] == [0.0] * 3
    assert [one.run.timings().images for one in again] == [2, 0, 1]


def test_a_later_turn_reuses_the_images_before_it(
    seeing: Any, player: Any, picture: Picture
) -> None:
    first = (BEGIN, picture(1), "What is it?", END)
    answer = player.play(seeing.job(*first))[0]
    player.rest()
    said = seeing.generator.model.detokenize(answer.ids)
    job = seeing.job(*first, "x", "<|im_end|>\n" + BEGIN, "And this?", picture(2), END)
    reply = Job([*answer.run.job.prompt, *answer.ids, *job.prompt[len(answer.run.job.prompt) :]])
    job.prompt = reply.prompt
    later = player.play(job)[0]
    assert said is not None
    assert later.cached >= len(answer.run.job.prompt) + len(answer.ids) - 1
    assert later.same_as(player.alone(job))


@pytest.mark.parametrize("between", ["", "x", "xy", "xyz"])
def test_few_tokens_between_images_are_exact_whatever_came_before(
    seeing: Any, player: Any, picture: Picture, between: str
) -> None:
    job = seeing.job("x", picture(1), between, picture(2), "x")
    alone = player.alone(job)
    for before in ("", "x", "xy", "xyzw"):
        player.forget()
        player.play(seeing.job("x", picture(1), before, picture(3), "xy", tokens=2))
        player.rest()
        assert player.play(job)[0].same_as(alone)


def test_another_image_at_the_same_place_is_not_reused(
    seeing: Any, player: Any, picture: Picture
) -> None:
    player.play(seeing.job(BEGIN, picture(1), "What is it?", END))
    other = seeing.job(BEGIN, picture(2), "What is it?", END)
    answer = player.play(other)[0]
    assert answer.cached <= len(seeing.text(BEGIN)) + len(seeing.text("<img>"))
    assert answer.same_as(player.alone(other))


def test_a_prompt_may_begin_and_end_with_an_image(
    seeing: Any, player: Any, picture: Picture
) -> None:
    job = seeing.job(picture(1), "between", picture(1))
    slices = seeing.generator.layout(picture(1)).slices
    job.prompt = job.prompt[job.prompt.index(-1) :]
    job.prompt = job.prompt[: len(job.prompt) - job.prompt[::-1].index(-2)]
    alone = player.alone(job)
    again = player.play(job)[0]
    assert again.cached == len(job.prompt) - slices[-1].tokens
    assert again.same_as(alone)


def test_the_clock_changes_chunks_of_images_but_no_bit(
    seeing: Any, player: Any, picture: Picture, monkeypatch: pytest.MonkeyPatch
) -> None:
    parts = (BEGIN, picture(1), "What is it?", picture(2, 168, 56), END)
    plain = player.alone(seeing.job(*parts))
    sizes = itertools.cycle([2, 3, 5])

    def chunk(self: Pace, left: int, seconds: float) -> int:
        size = min(left, next(sizes))
        return left if left - size == 1 and size == 2 else size - (left - size == 1)

    monkeypatch.setattr(Pace, "chunk", chunk)
    other = player.alone(seeing.job(*parts))
    assert other.chunks != plain.chunks
    assert other.same_as(plain)


@pytest.mark.parametrize("steps", [1, 2, 3, 4])
def test_a_job_that_leaves_while_it_looks_leaves_nothing_wrong(
    seeing: Any, player: Any, picture: Picture, steps: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = seeing.job(BEGIN, picture(1, 168, 112), "What is it?", END)
    alone = player.alone(job)
    player.forget()
    monkeypatch.setattr(Pace, "chunk", lambda self, left, seconds: 2 if left > 3 else left)
    leaving = player.start(job)
    while len(leaving.chunks) < 3 + steps:
        player.step()
    leaving.run.cancelled = True
    (sequence,) = [one for one in seeing.generator._cache.sequences if one.busy]
    before = sequence.run()
    player.step()
    assert before.span is None or sequence.length == before.start
    player.generator.drop(leaving.run)
    player.rest()
    assert player.play(job)[0].same_as(alone)


def test_a_prefix_with_images_is_copied_from_a_running_job(
    seeing: Any, player: Any, picture: Picture
) -> None:
    shared = (BEGIN, picture(1), "Some words about the picture, shared by both.", picture(2))
    first = seeing.job(*shared, "What is it?", END, tokens=20)
    second = seeing.job(*shared, "Where is it?", END)
    alone = player.alone(second)
    player.forget()
    running = player.start(first)
    while len(running.tokens) < 3:
        player.step()
    copied = player.start(second)
    while not copied.run.ended:
        player.step()
    assert copied.cached > len(seeing.job(*shared).prompt) - 3
    assert copied.same_as(alone)
