"""Single tokens between images, on the default model: where a machine reads one row by other
kernels than several, its weights show it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from hookline.engine import Job
from hookline.images import Image

pytestmark = pytest.mark.model

Picture = Callable[..., Image]


@pytest.fixture(scope="module")
def seeing(model_path: Path, tmp_path_factory: pytest.TempPathFactory, tiny: Any) -> Iterator[Any]:
    """The default model with an encoder of random weights."""
    projector = tmp_path_factory.mktemp("default") / "mmproj.gguf"
    tiny.projector(projector, "gemma3", out=576)
    made = tiny.seeing(model_path, projector, "gemma3", parallel=2)
    yield made
    made.generator.close()


def test_a_text_that_has_one_token_here_and_several_there(
    seeing: Any, player: Any, picture: Picture
) -> None:
    job = seeing.job("one two", picture(1), "one", picture(2), "one", tokens=3)
    alone = player.alone(job)
    for other in (" two", " two three"):
        player.forget()
        player.play(seeing.job("one two", picture(1), f"one{other}", picture(2), "x", tokens=2))
        again = player.play(job)[0]
        assert again.cached > 0
        assert again.same_as(alone)


def test_a_reply_to_a_text_of_one_token(seeing: Any, player: Any, picture: Picture) -> None:
    first = seeing.job("one two", picture(1), "one", tokens=6)
    answer = player.play(first)[0]
    player.rest()
    later = Job([*first.prompt, *answer.ids, *seeing.text(" three four")], images=first.images)
    later.max_tokens, later.ignore_end = 3, True
    again = player.play(later)[0]
    assert again.cached >= len(first.prompt) + len(answer.ids) - 1
    assert again.same_as(player.alone(later))
