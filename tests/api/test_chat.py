"""One chat request, streamed and plain."""

from __future__ import annotations

from typing import Any

import openai

from hookline.engines.scripted import say


async def test_plain_and_streamed_say_the_same(on_port: Any) -> None:
    async with on_port(script=say("Good", " morning", "!")) as server:
        client = openai.AsyncOpenAI(base_url=f"{server.url}/v1", api_key="none")
        plain = await client.chat.completions.create(
            model="any", messages=[{"role": "user", "content": "Hi"}]
        )
        stream = await client.chat.completions.create(
            model="any", messages=[{"role": "user", "content": "Hi"}], stream=True
        )
        text = "".join([c.choices[0].delta.content or "" async for c in stream])
        assert plain.choices[0].message.content == text == "Good morning!"
        assert plain.choices[0].finish_reason == "stop"
        await client.close()


async def test_usage_counts_prompt_and_answer(in_process: Any) -> None:
    async with in_process(script=say("a", "b", "c")) as server:
        answer = (await server.chat("hello", max_tokens=2)).json()
        assert answer["usage"]["completion_tokens"] == 2
        assert answer["choices"][0]["finish_reason"] == "length"
        assert answer["choices"][0]["message"]["content"] == "ab"
