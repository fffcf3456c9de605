"""Tokenize and detokenize."""

from __future__ import annotations

from typing import Any

IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}


async def test_text_and_back(in_process: Any) -> None:
    async with in_process() as server:
        for text in ("Hello ☃", "", "<|im_end|>", "a\x00b"):
            answer = (await server.client.post("/v1/tokenize", json={"text": text})).json()
            assert answer["count"] == len(answer["ids"])
            assert answer["max_ctx"] == 4096
            back = await server.client.post("/v1/detokenize", json={"ids": answer["ids"]})
            assert back.json() == {"text": text}


async def test_control_tokens_are_text_unless_they_are_meant(in_process: Any) -> None:
    async with in_process() as server:
        body = {"text": "a<|im_end|>"}
        as_text = (await server.client.post("/v1/tokenize", json=body)).json()
        meant = (await server.client.post("/v1/tokenize", json={**body, "special": True})).json()
    assert as_text["count"] == len(body["text"])
    assert meant["count"] == 2


async def test_messages_count_as_a_chat_counts_them(in_process: Any) -> None:
    messages = [{"role": "developer", "content": "Be brief."}, {"role": "user", "content": "Hi"}]
    async with in_process() as server:
        answer = (await server.client.post("/v1/tokenize", json={"messages": messages})).json()
        chat = await server.client.post("/v1/chat/completions", json={"messages": messages})
    assert answer["count"] == chat.json()["usage"]["prompt_tokens"]


async def test_wrong_values_name_the_field(in_process: Any) -> None:
    wrong: list[tuple[str, dict[str, Any], str]] = [
        ("tokenize", {}, "text"),
        ("tokenize", {"text": None}, "text"),
        ("tokenize", {"text": 5}, "text"),
        ("tokenize", {"text": "x", "messages": [{"role": "user", "content": "x"}]}, "text"),
        ("tokenize", {"messages": []}, "messages"),
        ("tokenize", {"messages": [{"role": "user"}]}, "messages[0].content"),
        ("tokenize", {"messages": [{"role": "user", "content": [IMAGE]}]}, "messages[0].content"),
        ("detokenize", {}, "ids"),
        ("detokenize", {"ids": "x"}, "ids"),
        ("detokenize", {"ids": [-1]}, "ids[0]"),
        ("detokenize", {"ids": [1.5]}, "ids[0]"),
        ("detokenize", {"ids": [True]}, "ids[0]"),
        ("detokenize", {"ids": [4096]}, "ids"),
        ("detokenize", {"ids": [10**4000]}, "ids"),
    ]
    async with in_process() as server:
        for route, body, param in wrong:
            answer = await server.client.post(f"/v1/{route}", json=body)
            assert answer.status_code == 400, (route, body)
            assert answer.json()["error"]["param"] == param, (route, body)


async def test_messages_that_a_chat_would_drop_are_counted(in_process: Any) -> None:
    messages = [{"role": "user", "content": "x" * 40}] * 9
    async with in_process(engine={"context": 300}) as server:
        answer = (await server.client.post("/v1/tokenize", json={"messages": messages})).json()
        chat = await server.client.post("/v1/chat/completions", json={"messages": messages})
    assert answer["dropped_messages"] == chat.json()["timings"]["dropped_messages"] > 0
    assert answer["count"] == chat.json()["usage"]["prompt_tokens"]


async def test_a_conversation_too_long_is_said_to_be(in_process: Any) -> None:
    messages = [{"role": "user", "content": "x" * 200}]
    async with in_process(engine={"context": 100}) as server:
        answer = await server.client.post("/v1/tokenize", json={"messages": messages})
    assert answer.json()["error"]["code"] == "context_length_exceeded"
