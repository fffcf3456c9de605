"""The life of an ExLlama engine: loading, cancelling, faults, memory."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hookline.engine import Job
from hookline.engines.exllama_library import Version
from hookline.errors import ApiError, EngineUnavailable, StartError
from hookline.images import Image

PROMPT = [1, 40, 50, 60, 70]
FOREVER: dict[str, Any] = {"max_tokens": None, "ignore_end": True}


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not condition():
            await asyncio.sleep(0.001)


async def test_loading_tells_its_progress_and_closing_frees_in_order(
    load_engine: Any, machine: Any, version: Version, make_folder: Any
) -> None:
    async with load_engine(draft=make_folder("small")) as engine:
        assert engine.state == "ready"
        assert engine.stats().kv_bytes == 2048
    assert engine.state == "closed"
    events = [event for event in machine.events if event != "overrides"]
    loads = ["load text", "load text", "generator"]
    ends = ["unload text", "unload text", "freed"]
    assert events == loads + (["generator closed"] if version == "exllamav3" else []) + ends


async def test_progress_grows_to_the_end(
    machine: Any, folder: Path, version: Version, load_engine: Any
) -> None:
    shares: list[float] = []
    async with load_engine() as engine:
        engine.generator.close()
        engine.generator.load(shares.append)
    assert shares == sorted(shares)
    assert 0 < shares[0] < 0.5 and shares[-1] == 1.0


async def test_a_client_that_leaves_frees_its_place(
    load_engine: Any, machine: Any, answer: Any
) -> None:
    async with load_engine(parallel=1, context=4096) as engine:
        generation = engine.submit(Job(PROMPT, **FOREVER))
        piece = await generation.__anext__()
        while not piece.tokens:
            piece = await generation.__anext__()
        waiting = engine.submit(Job([1, 2, 3], **FOREVER))
        await waiting.aclose()
        await generation.aclose()
        await until(lambda: engine.stats().running == engine.stats().queued == 0)
        (generator,) = machine.generators
        assert not generator.active_jobs and not generator.pending_jobs
        assert len((await answer(engine, PROMPT, max_tokens=3, ignore_end=True)).ids) == 3


async def test_one_leaves_and_the_others_go_on(load_engine: Any, answer: Any) -> None:
    about = {"max_tokens": 40, "ignore_end": True}
    async with load_engine(parallel=3) as engine:
        alone = await answer(engine, PROMPT, **about)
        leaver = engine.submit(Job([1, 9, 9], **FOREVER))
        others = asyncio.gather(answer(engine, PROMPT, **about), answer(engine, PROMPT, **about))
        await leaver.__anext__()
        await leaver.aclose()
        assert [one.ids for one in await others] == [alone.ids, alone.ids]


async def test_a_job_that_the_library_gives_up_is_told_and_no_other(
    load_engine: Any, machine: Any, answer: Any
) -> None:
    machine.broken = 99
    async with load_engine() as engine:
        outcome: Any = await asyncio.gather(
            answer(engine, [99, 1]),
            answer(engine, PROMPT, max_tokens=5, ignore_end=True),
            return_exceptions=True,
        )
        broken, well = outcome
        assert isinstance(broken, EngineUnavailable) and "no room for it" in str(broken)
        assert len(well.ids) == 5
        assert engine.stats().restarts == 0


async def test_after_a_fault_the_generator_is_made_anew_over_the_same_weights(
    load_engine: Any, machine: Any, answer: Any
) -> None:
    async with load_engine() as engine:
        before = await answer(engine, PROMPT, max_tokens=5, ignore_end=True)
        machine.faults.extend([None, RuntimeError("an odd kernel")])
        hit = await asyncio.gather(
            answer(engine, PROMPT, **FOREVER),
            answer(engine, [1, 2], **FOREVER),
            return_exceptions=True,
        )
        assert all("an odd kernel" in str(error) for error in hit)
        assert all(isinstance(error, ApiError) and error.status == 502 for error in hit)
        after = await answer(engine, PROMPT, max_tokens=5, ignore_end=True)
        assert after.ids == before.ids
        assert engine.stats().restarts == 1
        assert machine.events.count("load text") == 1
        assert machine.events.count("generator") == 2


async def test_a_fault_that_stays_loads_everything_again(
    load_engine: Any, machine: Any, answer: Any
) -> None:
    async with load_engine() as engine:
        await answer(engine, PROMPT, max_tokens=2, ignore_end=True)
        machine.faults.extend([RuntimeError("one"), RuntimeError("two")])
        for word in ("one", "two"):
            with pytest.raises(EngineUnavailable, match=word):
                await answer(engine, PROMPT)
        await until(lambda: engine.state == "ready")
        assert len((await answer(engine, PROMPT, max_tokens=2, ignore_end=True)).ids) == 2
        assert machine.events.count("load text") == 2
        assert machine.events.index("unload text") < machine.events.index("freed")


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        (
            type("OutOfMemoryError", (RuntimeError,), {})("CUDA\nout"),
            'lower one of them .cache = "q8"',
        ),
        (KeyError("lm_head"), "salty-3b cannot be loaded: KeyError: 'lm_head'"),
        (AssertionError("Unknown\narchitecture"), "cannot be loaded: .*Unknown architecture"),
    ],
)
async def test_what_cannot_be_loaded_is_one_line(
    load_engine: Any, machine: Any, fault: Exception, message: str
) -> None:
    machine.load_faults.append(fault)
    with pytest.raises(StartError, match=message) as error:
        async with load_engine():
            pass
    assert "\n" not in str(error.value)
    assert machine.events[-1] == "freed"


async def test_a_quantization_that_the_version_does_not_read_is_refused(
    load_engine: Any, make_folder: Any, version: Version
) -> None:
    other = {"exllamav2": "exl3", "exllamav3": "exl2"}[version]
    path = make_folder("other", quantization_config={"quant_method": other})
    with pytest.raises(
        StartError, match=f"quantized with {other}, which ExLlamaV[23] does not read"
    ):
        async with load_engine(path):
            pass


async def test_a_draft_model_of_more_tokens_is_refused(load_engine: Any, make_folder: Any) -> None:
    with pytest.raises(StartError, match="large has 99999 tokens and salty-3b only"):
        async with load_engine(draft=make_folder("large", vocab_size=99999)):
            pass


async def test_the_context_is_at_most_what_the_model_was_trained_for(
    load_engine: Any, caplog: pytest.LogCaptureFixture
) -> None:
    async with load_engine(context=100_000) as engine:
        assert engine.card.context == 4096
    assert "context = 100000 is lowered to it" in caplog.text


# Images


def picture(seed: int, width: int = 24, height: int = 16) -> Image:
    return Image(width, height, bytes([seed]) * (width * height * 3))


async def test_an_image_stands_in_the_prompt_and_is_encoded_once(
    load_engine: Any, machine: Any, make_folder: Any, answer: Any, version: Version
) -> None:
    path = make_folder("seeing", vision_config={"model_type": "pixtral"})
    about = {"max_tokens": 4, "ignore_end": True}
    async with load_engine(path) as engine:
        assert engine.card.vision
        ids = engine.image_tokens(picture(1), 0)
        assert ids.count(-1) == 6
        assert (ids[0], ids[-1]) == ((5, 6) if version == "exllamav3" else (-1, -1))
        prompt = [1, *ids, *engine.image_tokens(picture(2, 8, 8), 1), 40]
        images = [picture(1), picture(2, 8, 8)]
        first = await answer(engine, prompt, images=images, **about)
        again = await answer(engine, prompt, images=images, **about)
        other = await answer(engine, prompt, images=[picture(3), images[1]], **about)
    assert machine.embedded == 3
    assert first.ids == again.ids != other.ids
    assert again.timings.cached_tokens == len(prompt) - 1
    assert other.timings.cached_tokens < 3
    assert (first.timings.images, again.timings.vision_ms) == (2, 0)
    assert first.timings.vision_ms > 0


async def test_an_image_that_is_not_whole_in_the_prompt_is_refused(
    load_engine: Any, machine: Any, make_folder: Any, answer: Any
) -> None:
    path = make_folder("seeing", vision_config={"model_type": "pixtral"})
    async with load_engine(path) as engine:
        with pytest.raises(ApiError, match="image 0 takes 6 tokens, not 2"):
            await answer(engine, [1, -1, -1, 5], images=[picture(1)])


async def test_a_model_that_cannot_see_says_so(load_engine: Any) -> None:
    async with load_engine() as engine:
        assert not engine.card.vision
        with pytest.raises(ApiError, match="cannot see images"):
            engine.image_tokens(picture(1))


async def test_without_the_weights_of_its_vision_a_model_still_loads(
    load_engine: Any, machine: Any, make_folder: Any, caplog: pytest.LogCaptureFixture
) -> None:
    machine.load_faults.extend([None, KeyError("vision_tower")])
    async with load_engine(
        make_folder("seeing", vision_config={"model_type": "pixtral"})
    ) as engine:
        assert not engine.card.vision
    assert "Images are off" in caplog.text
