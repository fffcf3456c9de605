"""The official SDK against a server on a real port, and the shape of an answer."""

from __future__ import annotations

import asyncio
from typing import Any

import openai
import pytest

from hookline.api.bodies import ChatCompletion
from hookline.engines.scripted import say

HI: Any = [{"role": "user", "content": "Hi"}]


async def test_plain_and_streamed_say_the_same(on_port: Any) -> None:
    async with (
        on_port(script=say("Good", " morning", "!")) as server,
        openai.AsyncOpenAI(base_url=f"{server.url}/v1", api_key="none") as client,
    ):
        plain = await client.chat.completions.create(model="any", messages=HI)
        stream = await client.chat.completions.create(model="any", messages=HI, stream=True)
        text = "".join([c.choices[0].delta.content or "" async for c in stream])
    assert plain.choices[0].message.content == text == "Good morning!"
    assert plain.choices[0].finish_reason == "stop"
    assert plain.model_extra is not None and plain.model_extra["timings"]["predicted_n"] > 0


async def test_the_synchronous_sdk(on_port: Any) -> None:
    def talk(url: str) -> tuple[str | None, str, int]:
        with openai.OpenAI(base_url=f"{url}/v1", api_key="none") as client:
            plain = client.chat.completions.create(
                model="any",
                messages=HI,
                logprobs=True,
                top_logprobs=2,
                extra_body={"top_k": 3, "min_p": 0.1},
            )
            usage = 0
            text = ""
            for chunk in client.chat.completions.create(
                model="any", messages=HI, stream=True, stream_options={"include_usage": True}
            ):
                text += chunk.choices[0].delta.content or "" if chunk.choices else ""
                usage = chunk.usage.total_tokens if chunk.usage else usage
        return plain.choices[0].message.content, text, usage

    async with on_port(script=say("Good", " morning", "!")) as server:
        plain, text, usage = await asyncio.to_thread(talk, server.url)
    assert plain == text == "Good morning!"
    assert usage > 3


async def test_the_streaming_helper_of_the_sdk(on_port: Any) -> None:
    async with (
        on_port(script=say("Good", " morning", "!")) as server,
        openai.AsyncOpenAI(base_url=f"{server.url}/v1", api_key="none") as client,
        client.chat.completions.stream(model="any", messages=HI, n=2, logprobs=True) as stream,
    ):
        final: Any = await stream.get_final_completion()
    assert [choice.message.content for choice in final.choices] == ["Good morning!"] * 2
    assert [len(choice.logprobs.content) for choice in final.choices] == [3, 3]
    assert final.choices[0].finish_reason == "stop"


async def test_the_sdk_raises_the_right_errors(on_port: Any) -> None:
    async with (
        on_port() as server,
        openai.AsyncOpenAI(base_url=f"{server.url}/v1", api_key="none", max_retries=0) as client,
    ):
        with pytest.raises(openai.BadRequestError) as wrong:
            await client.chat.completions.create(model="any", messages=HI, temperature=5)
        assert (wrong.value.param, wrong.value.code) == ("temperature", None)
        with pytest.raises(openai.NotFoundError) as missing:
            await client.models.retrieve("nothing")
        assert missing.value.code == "model_not_found"
        server.kernel.stopping = True
        with pytest.raises(openai.InternalServerError) as stopping:
            await client.chat.completions.create(model="any", messages=HI)
        assert stopping.value.code == "shutting_down"
        assert stopping.value.response.headers["retry-after"]


async def test_usage_counts_prompt_and_answer(in_process: Any) -> None:
    async with in_process(script=say("a", "b", "c")) as server:
        answer = (await server.chat("hello", max_tokens=2)).json()
    assert answer["usage"]["completion_tokens"] == 2
    assert answer["choices"][0]["finish_reason"] == "length"
    assert answer["choices"][0]["message"]["content"] == "ab"


async def test_the_shape_of_an_answer(in_process: Any) -> None:
    async with in_process(script=say("a", "b")) as server:
        body = (await server.chat("hello", n=2, logprobs=True)).json()
    ChatCompletion.model_validate(body, strict=True)
    assert set(body["timings"]) == {
        *("queue_ms", "prompt_ms", "prompt_per_second", "predicted_n", "predicted_ms"),
        *("predicted_per_second", "cached_tokens", "max_ctx", "dropped_messages"),
        *("images", "vision_ms"),
    }
    assert set(body["usage"]) == {
        *("prompt_tokens", "completion_tokens", "total_tokens"),
        *("prompt_tokens_details", "completion_tokens_details"),
    }
    assert body["usage"]["prompt_tokens_details"] == {"cached_tokens": 0}
    assert body["usage"]["completion_tokens_details"] == {"reasoning_tokens": 0}
    assert body["timings"]["max_ctx"] == 4096
    assert "reasoning_content" not in body["choices"][0]["message"]
    assert "tool_calls" not in body["choices"][0]["message"]
    assert (body["object"], isinstance(body["created"], int)) == ("chat.completion", True)
