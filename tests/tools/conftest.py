"""What the tests over HTTP share: a server whose model spells out what it is to say."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from hookline import Job

HERMES = (
    "{% if tools %}tools: {% for tool in tools %}{{ tool.function.name }} {% endfor %}{% endif %}"
    "{% for m in messages %}{{ m.role }}: {{ m.content }}{% for call in m.tool_calls or [] %}"
    "<tool_call>{{ call.function | tojson }}</tool_call>{% endfor %}{{ '\n' }}{% endfor %}"
    "{% if enable_thinking %}{# <think> #}{% endif %}"
)
"""A chat template in the way of Hermes, which can think too."""


def tool(name: str, **properties: Any) -> dict[str, Any]:
    parameters = {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }
    return {"type": "function", "function": {"name": name, "parameters": parameters}}


TOOLS = [tool("get", city={"type": "string"}), tool("add", a={"type": "integer"})]


@dataclass
class Speller:
    """A script that says a text letter by letter, and keeps what it was asked."""

    text: str = ""
    prompts: list[str] = field(default_factory=list)
    jobs: list[Job] = field(default_factory=list)

    def __call__(self, prompt: str, job: Job) -> Iterator[bytes]:
        self.prompts.append(prompt)
        self.jobs.append(job)
        return (bytes([byte]) for byte in self.text.encode())


@dataclass
class Answer:
    """One choice, however it came."""

    content: str | None
    calls: list[dict[str, Any]]
    finish: str
    reasoning: str | None = None

    @property
    def made(self) -> list[tuple[str, Any]]:
        return [(c["function"]["name"], json.loads(c["function"]["arguments"])) for c in self.calls]


def plain(body: dict[str, Any]) -> list[Answer]:
    return [
        Answer(
            choice["message"]["content"],
            choice["message"].get("tool_calls", []),
            choice["finish_reason"],
            choice["message"].get("reasoning_content"),
        )
        for choice in body["choices"]
    ]


def streamed(text: str) -> list[Answer]:
    """The same from the frames of a stream."""
    frames = [line[6:] for line in text.splitlines() if line.startswith("data: ")]
    assert frames.pop() == "[DONE]"
    answers: dict[int, Answer] = {}
    for chunk in map(json.loads, frames):
        for choice in chunk["choices"]:
            answer = answers.setdefault(choice["index"], Answer(None, [], ""))
            delta = choice["delta"]
            answer.content = ((answer.content or "") + delta.get("content", "")) or None
            if "reasoning_content" in delta:
                answer.reasoning = (answer.reasoning or "") + delta["reasoning_content"]
            for part in delta.get("tool_calls", []):
                _add(answer.calls, part)
            answer.finish = choice["finish_reason"] or answer.finish
    for answer in answers.values():
        if not answer.calls and answer.content is None:
            answer.content = ""
    return list(answers.values())


def _add(calls: list[dict[str, Any]], part: dict[str, Any]) -> None:
    function = part["function"]
    if part["index"] == len(calls):
        assert part["type"] == "function" and part["id"] and function["name"]
        calls.append({"id": part["id"], "type": "function", "function": dict(function)})
    else:
        assert part["index"] == len(calls) - 1
        assert part.keys() == {"index", "function"} and function.keys() == {"arguments"}
        calls[-1]["function"]["arguments"] += function["arguments"]


@dataclass
class Caller:
    """A server with the plugin."""

    server: Any
    model: Speller

    async def ask(self, says: str = "", *, stream: bool = False, **fields: Any) -> Answer:
        (answer,) = await self.ask_all(says, stream=stream, **fields)
        return answer

    async def ask_all(self, says: str = "", *, stream: bool = False, **fields: Any) -> list[Answer]:
        self.model.text = says
        response = await self.server.chat(stream=stream, **{"tools": TOOLS, **fields})
        assert response.status_code == 200, response.text
        return streamed(response.text) if stream else plain(response.json())

    async def refusal(self, **fields: Any) -> dict[str, Any]:
        response = await self.server.chat(**{"tools": TOOLS, **fields})
        assert response.status_code == 400, response.text
        error: dict[str, Any] = response.json()["error"]
        return error


Start = Callable[..., AbstractAsyncContextManager[Caller]]


@pytest.fixture
def caller(in_process: Any, tmp_path: Path) -> Start:
    """Starts a server with a chat template; None is the scripted engine's own, without tools."""

    @asynccontextmanager
    async def start(
        template: str | None = HERMES,
        *,
        plugins: Any = None,
        engine: Any = None,
        order: Sequence[str] = ("structured", "tools"),
        **table: Any,
    ) -> AsyncIterator[Caller]:
        settings: dict[str, Any] = {
            "plugins": ["thinking", *order],
            "plugin": {"tools": table, "structured": {"compile_seconds": 10}},
        }
        if template is not None:
            (tmp_path / "chat.jinja").write_text(template)
            settings["model"] = {"chat_template": str(tmp_path / "chat.jinja")}
        model = Speller()
        about = {"script": model, "settings": settings, "plugins": plugins or {}}
        async with in_process(**about, engine=engine or {}) as server:
            yield Caller(server, model)

    return start
