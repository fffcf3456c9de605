"""An agent: the model calls functions until it has an answer. With OpenAI's Python SDK."""

import json
import os
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from openai import OpenAI

client = OpenAI(
    base_url=os.environ.get("OPENAI_BASE_URL", "http://127.0.0.1:1234/v1"),
    api_key=os.environ.get("OPENAI_API_KEY", "none"),
)


def now() -> str:
    """The date and time, in UTC."""
    return datetime.now(UTC).strftime("%A, %d %B %Y, %H:%M")


def multiply(a: float, b: float) -> float:
    """The product of two numbers."""
    return a * b


FUNCTIONS: dict[str, Callable[..., Any]] = {"now": now, "multiply": multiply}

NUMBER = {"type": "number"}
PARAMETERS: dict[str, Any] = {
    "now": {"type": "object", "properties": {}, "additionalProperties": False},
    "multiply": {
        "type": "object",
        "properties": {"a": NUMBER, "b": NUMBER},
        "required": ["a", "b"],
        "additionalProperties": False,
    },
}

tools: Any = [
    {
        "type": "function",
        "function": {
            "name": name,
            "description": function.__doc__,
            "parameters": PARAMETERS[name],
        },
    }
    for name, function in FUNCTIONS.items()
]

messages: list[Any] = [
    {"role": "system", "content": "Use the functions to find out what you do not know."},
    {"role": "user", "content": "What is 12.5 times 48?"},
]

for turn in range(5):
    answer = client.chat.completions.create(
        model="default",  # whichever is loaded answers
        messages=messages,
        tools=tools,
        tool_choice="required" if turn == 0 else "auto",
        max_tokens=200,
    )
    message = answer.choices[0].message
    if answer.choices[0].finish_reason != "tool_calls":
        print(message.content)
        break
    messages.append(message)
    for call in message.tool_calls or []:
        if call.type != "function":
            continue
        arguments = json.loads(call.function.arguments)
        result = FUNCTIONS[call.function.name](**arguments)
        print(f"{call.function.name}({arguments}) = {result}")
        messages.append({"role": "tool", "tool_call_id": call.id, "content": str(result)})
