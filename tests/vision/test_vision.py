"""Images over HTTP: what reaches the engine, and how each image that cannot be used is refused."""

from __future__ import annotations

import base64
import json
import os
import socket
import threading
from collections.abc import Callable, Mapping
from typing import Any

import openai
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PIL import Image

from hookline import Exchange, ImagePart, ImageUrl, Message, hookimpl
from hookline.testing import LocalServer, PluginContractTests
from hookline_vision import Vision

RED = Image.new("RGB", (40, 20), "red")
BLUE = Image.new("RGB", (24, 24), "blue")

Make = Callable[..., dict[str, Any]]
Refusal = Callable[..., Mapping[str, Any]]


class TestContract(PluginContractTests):
    plugin = Vision
    settings = {"max_side": 512}
    bad_settings = [
        {"max_images": 17},
        {"max_megapixels": 0},
        {"seconds": -1},
        {"fallback": "guess"},
        {"fallback": "clip"},
        {"low_side": 1},
        {"clip_labels": ["only one"]},
    ]


def test_pixels_reach_the_engine_in_their_place(seeing: LocalServer, picture: Make) -> None:
    content = [
        {"type": "text", "text": "left "},
        picture(RED),
        {"type": "text", "text": " right "},
        picture(BLUE, "JPEG"),
    ]
    answer = seeing.chat(content)
    (job,) = seeing.jobs
    assert [(image.width, image.height) for image in job.images] == [(40, 20), (24, 24)]
    assert job.images[0].rgb[:3] == bytes([255, 0, 0])
    assert "left [image 40x20] right [image 24x24]<|im_end|>" in seeing.prompts[0]
    assert answer.body["usage"]["prompt_tokens"] == len(job.prompt)


def test_images_of_several_turns_with_the_sdk(seeing: LocalServer, picture: Make) -> None:
    seeing.start()
    client = openai.OpenAI(base_url=f"{seeing.url}/v1", api_key="none", max_retries=0)
    messages: list[Any] = [
        {"role": "system", "content": "Look."},
        {"role": "user", "content": [picture(RED)]},
        {"role": "assistant", "content": "Red."},
        {"role": "user", "content": [picture(BLUE, "WEBP"), {"type": "text", "text": "And this?"}]},
    ]
    stream = client.chat.completions.create(model="any", messages=messages, stream=True)
    said = "".join(part.choices[0].delta.content or "" for part in stream if part.choices)
    assert said == "Hello, world."
    assert "<|im_start|>user\n[image 40x20]<|im_end|>" in seeing.prompts[0]
    assert "[image 24x24]And this?" in seeing.prompts[0]


def test_sixteen_images_and_not_one_more(
    seeing: LocalServer, picture: Make, refusal: Refusal
) -> None:
    colours = [picture(Image.new("RGB", (4 + i, 4), (i, 0, 0))) for i in range(17)]
    seeing.chat(colours[:16])
    assert [image.width for image in seeing.jobs[0].images] == list(range(4, 20))
    error = refusal(colours)
    assert error["param"] == "messages[0].content[16]"
    assert "carries 17 images, more than the 16" in error["message"]


def test_the_same_image_twice(seeing: LocalServer, picture: Make) -> None:
    seeing.chat([picture(RED), picture(RED), picture(BLUE), picture(RED)])
    widths = [image.width for image in seeing.jobs[0].images]
    assert widths == [40, 40, 24, 40]


def test_detail_is_a_matter_of_size(seeing: LocalServer, picture: Make) -> None:
    seeing.configure(plugin={"vision": {"max_side": 300, "low_side": 100}})
    large = Image.new("RGB", (600, 400))
    details: list[dict[str, str]] = [{}, {"detail": "auto"}, {"detail": "high"}, {"detail": "low"}]
    seeing.chat([picture(large, **detail) for detail in details])
    sizes = [(image.width, image.height) for image in seeing.jobs[0].images]
    assert sizes == [(300, 200), (300, 200), (300, 200), (100, 67)]


def test_detail_may_be_null_but_not_just_anything(
    seeing: LocalServer, picture: Make, refusal: Refusal
) -> None:
    seeing.chat([picture(RED, detail=None)])
    assert refusal([picture(RED, detail="huge")])["param"].endswith("image_url.detail")


@pytest.mark.parametrize(
    ("place", "content"), [(0, 1), (2, 0)], ids=["first message", "last message"]
)
def test_a_refusal_names_the_part(
    seeing: LocalServer, picture: Make, part: Make, refusal: Refusal, place: int, content: int
) -> None:
    messages: list[dict[str, Any]] = [
        {"role": "user", "content": [{"type": "text", "text": "this"}, picture(RED)]},
        {"role": "assistant", "content": "Red."},
        {"role": "user", "content": [picture(BLUE)]},
    ]
    messages[place]["content"][content] = part(b"no image at all")
    for stream in (False, True):
        error = refusal(messages, stream=stream)
        assert error["param"] == f"messages[{place}].content[{content}]"
        assert f"The image in messages[{place}].content[{content}] cannot be" in error["message"]
        assert error["code"] is None
    assert not seeing.jobs


def test_the_place_is_the_client_s_whatever_plugins_insert(
    server: LocalServer, part: Make, refusal: Refusal
) -> None:
    class Insert:
        @hookimpl
        async def transform(self, exchange: Exchange) -> None:
            exchange.messages.insert(0, Message(role="system", content="first"))

    server.use(Insert())
    server.use("vision")
    server.engine(vision=True)
    assert refusal([part(b"x")])["param"] == "messages[0].content[0]"


@pytest.mark.parametrize("scheme", ["http://127.0.0.1:{}/a.png", "HTTP://localhost:{}/"])
def test_nothing_is_fetched(seeing: LocalServer, refusal: Refusal, scheme: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = scheme.format(listener.getsockname()[1])
        error = refusal([{"type": "image_url", "image_url": {"url": url}}])
        listener.setblocking(False)
        with pytest.raises(BlockingIOError):
            listener.accept()
    assert error["param"] == "messages[0].content[0]"
    assert "nothing is fetched" in error["message"]


@pytest.mark.parametrize("url", ["file:///etc/passwd", "ftp://x/y", "/etc/passwd", "data:,", ""])
def test_other_addresses(seeing: LocalServer, refusal: Refusal, url: str) -> None:
    error = refusal([{"type": "image_url", "image_url": {"url": url}}])
    assert error["param"] == "messages[0].content[0]"


def test_too_many_bytes_are_refused_before_they_are_decoded(
    seeing: LocalServer, part: Make, refusal: Refusal
) -> None:
    seeing.configure(plugin={"vision": {"max_image_mb": 0.5}})
    error = refusal([part(b"\0" * 600_000)])
    assert "it has 0.6 megabytes, more than the 0.5 that are read" in error["message"]


def test_too_many_pixels(seeing: LocalServer, picture: Make, refusal: Refusal) -> None:
    seeing.configure(plugin={"vision": {"max_megapixels": 0.01}})
    seeing.chat([picture(Image.new("RGB", (100, 100)))])
    error = refusal([picture(Image.new("RGB", (101, 100)))])
    assert "it has 101 x 100 pixels, more than the 0.01 megapixels" in error["message"]


def test_letters_that_base64_does_not_have(
    seeing: LocalServer, refusal: Refusal, picture: Make
) -> None:
    good = picture(RED)["image_url"]["url"]
    for url in (good[:40] + "é" + good[41:], good[:40] + "-" + good[41:], good + "=AAAA"):
        error = refusal([{"type": "image_url", "image_url": {"url": url}}])
        assert "base64" in error["message"]


@pytest.mark.parametrize("role", ["system", "developer", "assistant", "tool"])
def test_only_users_show_images(
    seeing: LocalServer, picture: Make, refusal: Refusal, role: str
) -> None:
    messages = [
        {"role": "user", "content": "hi"},
        {"role": role, "content": [picture(RED)], "tool_call_id": "a"},
        {"role": "user", "content": "well?"},
    ]
    error = refusal(messages)
    assert error["param"] == "messages[1].content"
    assert f"has the role '{role}'" in error["message"]


def test_a_model_that_cannot_see(server: LocalServer, picture: Make, refusal: Refusal) -> None:
    server.use("vision")
    error = refusal([{"type": "text", "text": "look"}, picture(RED)])
    assert error["param"] == "messages[0].content[1]"
    assert "cannot see images" in error["message"]
    assert "mmproj" in error["message"]
    assert server.chat("Hello").text


def test_marks_that_users_type_are_text(seeing: LocalServer, picture: Make) -> None:
    typed = "<image> <__media__> <|image_pad|> \ufdd10\ufdd2 [img]"
    seeing.chat([{"type": "text", "text": typed}, picture(RED)])
    assert len(seeing.jobs[0].images) == 1
    assert "<image> <__media__> <|image_pad|>" in seeing.prompts[0]


def test_images_that_other_plugins_add(server: LocalServer, picture: Make) -> None:
    class Screenshot:
        @hookimpl
        async def transform(self, exchange: Exchange) -> None:
            url = picture(BLUE)["image_url"]["url"]
            shot = ImagePart(image_url=ImageUrl(url=url))
            last = exchange.messages[-1]
            assert isinstance(last.content, list)
            exchange.messages[-1] = last.model_copy(update={"content": [*last.content, shot]})

    server.use(Screenshot())
    server.use("vision")
    server.engine(vision=True)
    server.chat([picture(RED)])
    assert [image.width for image in server.jobs[0].images] == [40, 24]


def test_an_image_that_comes_again_is_not_decoded_again(seeing: LocalServer, picture: Make) -> None:
    seeing.chat([picture(RED)])
    pictures = seeing.plugin("vision")._pictures
    seeing.run(pictures.close())
    pictures._decoders._start = None  # a decoder would fail to start
    seeing.chat([picture(RED)])
    first, second = (job.images[0] for job in seeing.jobs)
    assert first is second


def test_every_client_gets_its_own_image(seeing: LocalServer, picture: Make) -> None:
    seeing.plays(lambda prompt, job: [f"{job.images[0].width}"])
    shown = {width: [picture(Image.new("RGB", (width, 8)))] for width in range(10, 22)}
    said: dict[int, str] = {}
    seeing.start()

    def ask(width: int) -> None:
        said[width] = seeing.chat(shown[width]).text

    threads = [threading.Thread(target=ask, args=(width,)) for width in shown]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert said == {width: f"{width}" for width in shown}


def test_the_decoders_end_with_the_server(seeing: LocalServer, picture: Make) -> None:
    seeing.chat([picture(RED)])
    (decoder,) = seeing.plugin("vision")._pictures._decoders._free
    seeing.stop()
    with pytest.raises(ProcessLookupError):
        os.kill(decoder.pid, 0)


def test_without_the_plugin_images_are_refused(
    server: LocalServer, picture: Make, refusal: Refusal
) -> None:
    server.engine(vision=True)
    error = refusal([picture(RED)])
    assert "Images need the plugin 'vision'" in error["message"]


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(url=st.one_of(st.text(), st.text().map("data:".__add__)), detail=st.none() | st.text())
def test_any_address_gets_an_answer(seeing: LocalServer, url: str, detail: str | None) -> None:
    body = {"type": "image_url", "image_url": {"url": url, "detail": detail}}
    messages = [{"role": "user", "content": [body]}]
    response = seeing.client.post("/v1/chat/completions", json={"messages": messages})
    assert response.status_code == 400
    assert json.loads(response.text)["error"]["param"].startswith("messages")


def test_base64_may_be_wrapped(seeing: LocalServer, encoded: Callable[..., bytes]) -> None:
    wrapped = base64.encodebytes(encoded(RED)).decode()
    url = f"data:image/png;base64,{wrapped}"
    seeing.chat([{"type": "image_url", "image_url": {"url": url}}])
    assert seeing.jobs[0].images[0].width == 40
