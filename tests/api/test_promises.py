"""Fields and images that need a plugin are refused where there is none."""

from __future__ import annotations

from typing import Any

import pytest

PROMISES: list[tuple[str, Any]] = [
    ("response_format", {"type": "json_object"}),
    ("response_format", {"type": "json_schema", "json_schema": {"name": "x", "schema": {}}}),
    ("response_format", "json"),
    ("response_format", {}),
    ("tools", [{"type": "function", "function": {"name": "f"}}]),
    ("tools", "x"),
    ("tool_choice", "required"),
    ("enable_thinking", True),
    ("thinking_budget", 5),
    ("web_search", True),
    ("web_search", "deep"),
    ("knowledge", "c:3"),
    ("knowledge", "none"),
]


async def test_promises_nobody_keeps_are_refused(in_process: Any) -> None:
    async with in_process() as server:
        for field, value in PROMISES:
            for stream in (False, True):
                answer = await server.chat(stream=stream, **{field: value})
                assert answer.status_code == 400, (field, value)
                assert answer.json()["error"]["param"] == field
            body = {"prompt": "x", field: value}
            assert (await server.client.post("/v1/completions", json=body)).status_code == 400


NOTHING: list[tuple[str, Any]] = [
    ("response_format", {"type": "text"}),
    ("tools", []),
    ("tool_choice", "none"),
    ("tool_choice", "auto"),
    ("enable_thinking", False),
    ("reasoning_effort", "none"),
    ("web_search", False),
    ("knowledge", False),
]


async def test_asking_for_nothing_is_fine(in_process: Any) -> None:
    async with in_process() as server:
        for field, value in NOTHING:
            assert (await server.chat(**{field: value})).status_code == 200, field


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1:9/x.png",
        "https://example.org/x.png",
        "file:///etc/passwd",
        "data:image/png;base64,aGk=",
    ],
)
async def test_images_nobody_takes_are_refused(
    in_process: Any, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(*_: Any) -> None:
        raise AssertionError("the server opened a connection")

    parts = [{"type": "text", "text": "see"}, {"type": "image_url", "image_url": {"url": url}}]
    async with in_process() as server:
        monkeypatch.setattr("socket.socket.connect", never)
        answer = await server.chat(parts)
    assert answer.status_code == 400
    assert answer.json()["error"]["param"] == "messages[0].content"
