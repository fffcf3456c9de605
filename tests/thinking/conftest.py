"""What the tests of thinking share: a model that thinks, and answers read from both paths."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from hookline import Job
from hookline.engines.scripted import Line

TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message.role }}\n"
    "{% if message.reasoning_content %}<think>{{ message.reasoning_content }}</think>{% endif %}"
    "{{ message.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
    "{% if enable_thinking is defined and not enable_thinking %}<think>\n\n</think>\n\n{% endif %}"
)
"""Knows thinking the way Qwen's does: off is written into the prompt, on is left to the model."""


@dataclass
class Model:
    """A script that keeps what it was asked."""

    lines: tuple[Line, ...]
    prompts: list[str] = field(default_factory=list)
    jobs: list[Job] = field(default_factory=list)

    def __call__(self, prompt: str, job: Job) -> Iterator[Line]:
        self.prompts.append(prompt)
        self.jobs.append(job)
        return iter(self.lines)


@dataclass
class Answer:
    """One choice, however it came."""

    content: str | None
    reasoning: str | None
    finish: str
    usage: dict[str, Any]
    logprobs: list[str] | None = None

    @property
    def thought_tokens(self) -> int:
        tokens: int = self.usage["completion_tokens_details"]["reasoning_tokens"]
        return tokens


def plain(body: dict[str, Any]) -> list[Answer]:
    return [
        Answer(
            choice["message"]["content"],
            choice["message"].get("reasoning_content"),
            choice["finish_reason"],
            body["usage"],
            choice["logprobs"] and [entry["token"] for entry in choice["logprobs"]["content"]],
        )
        for choice in body["choices"]
    ]


def streamed(text: str) -> list[Answer]:
    """The same from the frames of a stream; a channel that never came is None."""
    frames = [line[6:] for line in text.splitlines() if line.startswith("data: ")]
    assert frames.pop() == "[DONE]"
    answers: dict[int, Answer] = {}
    for chunk in map(json.loads, frames):
        for choice in chunk["choices"]:
            answer = answers.setdefault(choice["index"], Answer("", None, "", {}))
            delta = choice["delta"]
            answer.content = (answer.content or "") + delta.get("content", "")
            if "reasoning_content" in delta:
                answer.reasoning = (answer.reasoning or "") + delta["reasoning_content"]
            if choice["logprobs"]:
                entries = choice["logprobs"]["content"]
                answer.logprobs = (answer.logprobs or []) + [entry["token"] for entry in entries]
            answer.finish = choice["finish_reason"] or answer.finish
        for answer in answers.values():
            answer.usage = chunk.get("usage", answer.usage)
    return list(answers.values())


@dataclass
class Thinker:
    """A server with the plugin."""

    server: Any
    model: Model

    async def ask(self, content: Any = "Hi", *, stream: bool = False, **fields: Any) -> Answer:
        (answer,) = await self.ask_all(content, stream=stream, **fields)
        return answer

    async def ask_all(
        self, content: Any = "Hi", *, stream: bool = False, **fields: Any
    ) -> list[Answer]:
        response = await self.server.chat(content, stream=stream, **fields)
        assert response.status_code == 200, response.text
        return streamed(response.text) if stream else plain(response.json())

    async def refusal(self, **fields: Any) -> dict[str, Any]:
        response = await self.server.chat(**fields)
        assert response.status_code == 400, response.text
        error: dict[str, Any] = response.json()["error"]
        return error


Start = Callable[..., AbstractAsyncContextManager[Thinker]]


@pytest.fixture
def thinker(in_process: Any, tmp_path: Path) -> Start:
    """Starts a server whose model says the given lines; ``template`` is its chat template."""

    @asynccontextmanager
    async def start(
        *lines: Line, template: str | None = TEMPLATE, plugins: Any = None, **table: Any
    ) -> AsyncIterator[Thinker]:
        settings: dict[str, Any] = {"plugins": ["thinking"], "plugin": {"thinking": table}}
        if template is not None:
            (tmp_path / "chat.jinja").write_text(template)
            settings["model"] = {"chat_template": str(tmp_path / "chat.jinja")}
        model = Model(lines)
        async with in_process(script=model, settings=settings, plugins=plugins or {}) as server:
            yield Thinker(server, model)

    return start
