"""Jobs with images in the generator, and in the engine around it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from hookline.engine import Job, Sampling
from hookline.engines.llamacpp import LlamaCppEngine
from hookline.errors import EngineUnavailable, InvalidRequest
from hookline.images import Image

pytestmark = pytest.mark.model

Picture = Callable[..., Image]


def test_sixteen_images_in_one_prompt(seeing: Any, player: Any, picture: Picture) -> None:
    images = [picture(number, 56, 56) for number in range(16)]
    job = seeing.job("These: ", *images, " Which is red?")
    assert len(job.prompt) < seeing.generator.card.context
    answer = player.play(job)[0]
    assert answer.finish == "length"
    assert answer.run.timings().images == 16
    assert answer.run.timings().vision_ms > 0
    assert answer.run.timings().prompt_tokens == len(job.prompt)


def test_images_do_not_stop_the_others(seeing: Any, player: Any, picture: Picture) -> None:
    writing = player.start(seeing.job("Hello there", tokens=200))
    while len(writing.tokens) < 2:
        player.step()
    images = picture(501), picture(502)
    looking = player.start(seeing.job("a b c", images[0], "d e f", images[1], "g h i", tokens=2))
    encodings = 0
    while not looking.run.ended:
        before = len(writing.tokens)
        vision_ms = looking.run.timings().vision_ms
        done = looking.chunks[-1:]
        player.step()
        assert len(writing.tokens) == before + 1
        encoded = looking.run.timings().vision_ms > vision_ms
        encodings += encoded
        assert not (encoded and looking.chunks[-1:] != done), "one step encoded and read"
    assert encodings == sum(len(seeing.generator.layout(image).slices) for image in images)
    writing.run.cancelled = True
    player.generator.drop(writing.run)


def test_choices_of_one_prompt_encode_its_image_once(
    seeing: Any, player: Any, picture: Picture, monkeypatch: pytest.MonkeyPatch
) -> None:
    encoded: list[int] = []
    projector = seeing.generator.parts.looks.projector
    encode = projector.encode

    def counted(bitmap: Any, number: int) -> Any:
        encoded.append(number)
        return encode(bitmap, number)

    monkeypatch.setattr(projector, "encode", counted)
    image = picture(77)
    jobs = [seeing.job("a b c", image, "what is it?", tokens=3) for _ in range(3)]
    first, *others = player.play(*jobs)
    assert sorted(encoded) == list(range(len(seeing.generator.layout(image).slices)))
    assert [one.cached for one in others] == [len(jobs[0].prompt) - 2] * 2
    assert all(one.same_as(first) for one in others)


def test_an_image_that_cannot_be_encoded_fails_its_own_job_only(
    seeing: Any, player: Any, picture: Picture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(bitmap: Any, number: int) -> Any:
        raise RuntimeError("out of colours")

    words = seeing.job("only words", tokens=3)
    alone = player.alone(words)
    player.forget()
    monkeypatch.setattr(seeing.generator.parts.looks.projector, "encode", broken)
    looking, other = player.play(seeing.job("a b", picture(88), "c d"), words)
    assert isinstance(looking.error, EngineUnavailable)
    assert "out of colours" in str(looking.error)
    assert other.same_as(alone)
    monkeypatch.undo()
    assert player.play(seeing.job("a b", picture(88), "c d"))[0].error is None


def test_penalties_look_at_the_words_of_a_prompt_with_images(
    seeing: Any, player: Any, picture: Picture
) -> None:
    sampling = Sampling(repetition_penalty=1.5)
    answer = player.play(seeing.job("a b", picture(1), "c d", sampling=sampling))[0]
    assert answer.finish == "length"


@pytest.mark.parametrize("change", ["lost", "doubled", "torn", "unknown", "no image"])
def test_a_prompt_that_does_not_hold_its_images_is_refused(
    seeing: Any, player: Any, picture: Picture, change: str
) -> None:
    job = seeing.job("a b", picture(1), "c d")
    first = job.prompt.index(-1)
    match change:
        case "lost":
            del job.prompt[first]
        case "doubled":
            job.prompt.insert(first, -1)
        case "torn":
            job.prompt = [-1, *job.prompt[:first], *job.prompt[first + 1 :]]
        case "unknown":
            job.prompt.append(-2)
        case "no image":
            job.images = []
    with pytest.raises(InvalidRequest, match="prompt"):
        player.start(job)


async def test_the_engine_looks_and_cancels(seeing: Any, picture: Picture) -> None:
    generator = seeing.generator
    engine = LlamaCppEngine(
        generator._path, model_id="tiny", settings=generator._settings, max_queue=4
    )
    await engine.load(lambda _: None)
    try:
        assert engine.card.vision
        before, after = (engine.tokenize(text) for text in ("a b", "c d"))
        image = picture(1)
        ids = [*before, *engine.image_tokens(image), *after]
        job = Job(ids, images=[image], max_tokens=3, ignore_end=True)
        pieces = [piece async for piece in engine.submit(job)]
        assert sum(len(piece.tokens) for piece in pieces) == 3
        assert pieces[-1].timings.images == 1
        assert pieces[-1].timings.vision_ms > 0
        many = [picture(100 + number) for number in range(8)]
        ids = [token for place, one in enumerate(many) for token in engine.image_tokens(one, place)]
        leaving = engine.submit(Job([*before, *ids, *after], images=many, ignore_end=True))
        await anext(aiter(leaving))
        await leaving.aclose()
        async with asyncio.timeout(20):
            while engine.stats().running:
                await asyncio.sleep(0.01)
    finally:
        await engine.close()
    assert engine.state == "closed"
