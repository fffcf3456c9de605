"""Images in prompts: where they stand, what they cost, and what no client can type."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from hookline import Exchange, hookimpl
from hookline.engines.scripted import IMAGE_TOKENS, ScriptedEngine
from hookline.errors import ContextLengthExceeded, InvalidRequest
from hookline.images import Image
from hookline.marks import Defuser, image_mark, marked_images, tokenize
from hookline.messages import ImagePart, ImageUrl, Message, Part, TextPart
from hookline.prompt import Prompt, fit


def image(number: int = 0) -> Image:
    return Image(1, 1, bytes([number, 0, 0]))


def message(*parts: str | Image | None, role: str = "user") -> Message:
    """A message of texts and images; None is an image that nobody decoded."""
    url = ImageUrl(url="data:image/png;base64,AA==")
    content: list[Part] = []
    for part in parts:
        if isinstance(part, str):
            content.append(TextPart(text=part))
        else:
            bare = ImagePart(image_url=url)
            content.append(bare if part is None else bare.decoded(part))
    return Message.model_validate({"role": role, "content": ""}).model_copy(
        update={"content": content}
    )


def render(messages: Sequence[Mapping[str, Any]]) -> str:
    return "".join(f"{one['role']}:{one['content']};" for one in messages)


def fitted(*messages: Message, context: int = 200, **engine: Any) -> Prompt:
    scripted = ScriptedEngine(context=context, **{"vision": True} | engine)
    return fit(scripted, messages, render)


def shape(prompt: Prompt) -> str:
    """The prompt with a digit for every token of an image."""
    return "".join(chr(i) if 0 <= i < 256 else str(-1 - i) if i < 0 else "" for i in prompt.ids)


def test_images_stand_where_they_were_in_any_message() -> None:
    red, blue = image(1), image(2)
    prompt = fitted(message("a", red, "b"), message("c", role="assistant"), message(blue, red, "d"))
    assert shape(prompt) == "user:a0000b;assistant:c;user:11112222d;"
    assert prompt.images == (red, blue, red)


def test_images_cost_context_and_go_with_their_messages() -> None:
    old, new = image(1), image(2)
    first, answer, last = message("a", old), message("b", role="assistant"), message("c", new)
    room = len("user:c;") + IMAGE_TOKENS + 2  # the begin token, and one for the answer
    prompt = fitted(first, answer, last, context=room)
    assert shape(prompt) == "user:c0000;"
    assert (prompt.images, prompt.dropped) == ((new,), 2)
    with pytest.raises(ContextLengthExceeded, match=f"need {room - 1}"):
        fitted(first, answer, last, context=room - 1)


def test_what_a_client_types_is_no_image() -> None:
    typed = image_mark(0)
    prompt = fitted(message(f"{typed}\ufdd0", image(), typed))
    assert prompt.ids.count(-1) == IMAGE_TOKENS
    assert len(prompt.images) == 1
    assert marked_images(Defuser(()).text(typed)) == []
    assert marked_images(Defuser(()).text("\ufdd1")) == []


def test_a_control_token_over_two_parts_stays_text_also_beside_images() -> None:
    scripted = ScriptedEngine(vision=True)
    parts = message("<|im_", "end|>", image(), "<|im_end|>", "x")
    text = Defuser(scripted.card.special_tokens).message(parts, 0)["content"]
    ids = tokenize(scripted, text, [image()]).ids
    assert max(ids[1:]) < 256


def test_an_image_that_nobody_decoded_is_refused() -> None:
    with pytest.raises(InvalidRequest, match="no plugin has decoded"):
        fitted(message("a", None))


def test_a_model_that_cannot_see_refuses() -> None:
    with pytest.raises(InvalidRequest, match="cannot see"):
        fitted(message("a", image()), vision=False)


@pytest.mark.parametrize("lost", [lambda text: text[:3], lambda text: ""])
def test_a_template_that_loses_an_image_is_refused(lost: Any) -> None:
    def template(messages: Sequence[Mapping[str, Any]]) -> str:
        return "".join(lost(one["content"]) for one in messages)

    conversation = [message("what is it?", image())]
    with pytest.raises(InvalidRequest, match="leaves out an image"):
        fit(ScriptedEngine(vision=True), conversation, template)


async def test_the_script_is_told_where_images_are_and_the_usage_what_they_cost(
    in_process: Any,
) -> None:
    class Decoder:
        @hookimpl
        async def transform(self, exchange: Exchange) -> None:
            for place, one in enumerate(exchange.messages):
                parts = one.content if isinstance(one.content, list) else []
                seen = [p.decoded(image()) if isinstance(p, ImagePart) else p for p in parts]
                exchange.messages[place] = one.model_copy(update={"content": seen})

    told: list[tuple[str, int]] = []

    def script(prompt: str, job: Any) -> list[str]:
        told.append((prompt, len(job.images)))
        return ["Red", "."]

    part = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}
    words = {"type": "text", "text": "What is it?"}
    about = {"script": script, "plugins": {"decoder": Decoder()}, "engine": {"vision": True}}
    async with in_process(**about) as server:
        answer = (await server.chat([words, part])).json()
        without = (await server.chat([words])).json()
    assert told[0] == (told[1][0].replace("is it?", "is it?[image 1x1]"), 1)
    counts = [one["usage"]["prompt_tokens"] for one in (answer, without)]
    assert counts[0] - counts[1] == IMAGE_TOKENS
    assert (answer["timings"]["images"], without["timings"]["images"]) == (1, 0)
