"""The default model, which was never taught to call, calls; and thinks before, when it must."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from hookline.app import create_app
from hookline.config import Settings

pytestmark = pytest.mark.model

SCHEMAS: dict[str, Any] = {
    "weather": {
        "type": "object",
        "properties": {
            "city": {"type": "string", "maxLength": 20},
            "unit": {"enum": ["celsius", "fahrenheit"]},
        },
        "required": ["city", "unit"],
        "additionalProperties": False,
    },
    "book": {
        "type": "object",
        "properties": {
            "seats": {"type": "integer", "minimum": 1, "maximum": 9},
            "day": {"type": "string", "format": "date"},
        },
        "required": ["seats", "day"],
        "additionalProperties": False,
    },
}
TOOLS = [
    {"type": "function", "function": {"name": name, "parameters": schema}}
    for name, schema in SCHEMAS.items()
]


async def ask(app: Any, **fields: Any) -> dict[str, Any]:
    body = {
        "messages": [{"role": "user", "content": "Book two seats for tomorrow."}],
        "tools": TOOLS,
        "max_tokens": 120,
        **fields,
    }
    answer = await app.test_client().post("/v1/chat/completions", json=body)
    assert answer.status_code == 200, await answer.get_data()
    result: dict[str, Any] = await answer.get_json()
    return result


def check(choice: dict[str, Any], name: str | None = None) -> None:
    assert choice["finish_reason"] == "tool_calls"
    (call,) = choice["message"]["tool_calls"]
    called = call["function"]["name"]
    assert called in SCHEMAS and called == (name or called)
    arguments = json.loads(call["function"]["arguments"])
    assert jsonschema_rs.is_valid(SCHEMAS[called], arguments)


async def test_the_default_model_calls(tmp_path: Path) -> None:
    if importlib.util.find_spec("llama_cpp") is None:
        pytest.skip("llama-cpp-python is not installed: pip install 'hookline[llamacpp]'")
    settings = Settings(
        data_dir=tmp_path,
        plugins=["thinking", "structured", "tools"],
        plugin={"thinking": {"force": True}, "structured": {"compile_seconds": 10}},
        model={"context": 1024, "parallel": 2, "threads": 1},
    )
    app = create_app(settings)
    async with app.test_app():
        await app.extensions["hookline"].loaded
        check((await ask(app, tool_choice="required"))["choices"][0])
        for name in SCHEMAS:
            named = {"type": "function", "function": {"name": name}}
            check((await ask(app, tool_choice=named))["choices"][0], name)
        body = await ask(app, tool_choice="required", enable_thinking=True, thinking_budget=8)
        (choice,) = body["choices"]
        check(choice)
        assert choice["message"]["reasoning_content"]
        assert "think>" not in json.dumps(choice)
        assert 8 <= body["usage"]["completion_tokens_details"]["reasoning_tokens"] <= 20
        for _ in range(2):
            check_either(
                (await ask(app, response_format=BOOKING, tool_choice="auto"))["choices"][0]
            )


BOOKING = {"type": "json_schema", "json_schema": {"name": "b", "schema": SCHEMAS["book"]}}


def check_either(choice: dict[str, Any]) -> None:
    if choice["message"].get("tool_calls"):
        check(choice)
    else:
        assert choice["finish_reason"] == "stop"
        answer = json.loads(choice["message"]["content"])
        assert jsonschema_rs.is_valid(SCHEMAS["book"], answer)
