"""What the tests of the HTTP contract share: a script that listens, a plugin that takes notes."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import httpx
import pytest
from pydantic import BaseModel

from hookline import Exchange, Job, hookimpl
from hookline.engines.scripted import Line
from hookline.stream import Delta


@dataclass
class Listener:
    """A script that keeps what it was asked and says its lines."""

    lines: tuple[Line, ...] = ("Good", " morning", "!")
    prompts: list[str] = field(default_factory=list)
    jobs: list[Job] = field(default_factory=list)

    def __call__(self, prompt: str, job: Job) -> Iterator[Line]:
        self.prompts.append(prompt)
        self.jobs.append(job)
        return iter(self.lines)


class NoteFields(BaseModel):
    """A request field, so that requests can ask for the note taker."""

    note: str | None = None


class Notes:
    """A plugin that notes every call of its hooks; ``faults`` are raised by the hooks they name."""

    def __init__(self, name: str = "notes", log: list[str] | None = None) -> None:
        self.name = name
        self.request_fields = NoteFields if name == "notes" else None
        self.log = [] if log is None else log
        self.faults: dict[str, Exception] = {}
        self.settled: list[BaseException | None] = []
        self.exchanges: list[Exchange] = []

    def _note(self, hook: str) -> None:
        self.log.append(f"{self.name}.{hook}")
        if hook in self.faults:
            raise self.faults[hook]

    @hookimpl
    async def admit(self, exchange: Exchange) -> None:
        self.exchanges.append(exchange)
        self._note("admit")

    @hookimpl
    async def transform(self, exchange: Exchange) -> None:
        self._note("transform")

    @hookimpl
    def template_vars(self, exchange: Exchange) -> Mapping[str, Any] | None:
        self._note("template_vars")
        return None

    @hookimpl
    def render_prompt(self, exchange: Exchange) -> str | None:
        self._note("render_prompt")
        return None

    @hookimpl
    def begin_answer(self, exchange: Exchange) -> str | None:
        self._note("begin_answer")
        return None

    @hookimpl
    async def shape_job(self, exchange: Exchange, job: Job) -> None:
        self._note("shape_job")

    @hookimpl
    def stage(self, exchange: Exchange, job: Job) -> NotingStage:
        self._note("stage")
        return NotingStage(self)

    @hookimpl
    def opening_fields(self, exchange: Exchange) -> Mapping[str, Any]:
        self._note("opening_fields")
        return {f"{self.name}_opened": True}

    @hookimpl
    def response_headers(self, exchange: Exchange) -> Mapping[str, str]:
        self._note("response_headers")
        return {f"x-{self.name}": "here"}

    @hookimpl
    def closing_fields(self, exchange: Exchange) -> Mapping[str, Any]:
        self._note("closing_fields")
        return {f"{self.name}_closed": True}

    @hookimpl
    async def settle(self, exchange: Exchange, error: BaseException | None) -> None:
        self.settled.append(error)
        self._note("settle")


class NotingStage:
    """Passes everything on; breaks where its plugin's ``feed`` or ``finish`` is to fail."""

    def __init__(self, notes: Notes) -> None:
        self._notes = notes

    def feed(self, delta: Delta) -> list[Delta]:
        if "feed" in self._notes.faults:
            raise self._notes.faults["feed"]
        return [delta]

    def finish(self) -> list[Delta]:
        if "finish" in self._notes.faults:
            raise self._notes.faults["finish"]
        return []


@dataclass
class Events:
    """A streamed answer, read to its end."""

    status: int
    headers: httpx.Headers
    chunks: list[dict[str, Any]]
    done: bool
    comments: int

    @property
    def text(self) -> str:
        return "".join(
            choice.get("text") or choice.get("delta", {}).get("content") or ""
            for chunk in self.chunks
            for choice in chunk.get("choices", [])
        )

    @property
    def finishes(self) -> list[str]:
        return [
            choice["finish_reason"]
            for chunk in self.chunks
            for choice in chunk.get("choices", [])
            if choice["finish_reason"] is not None
        ]


async def read_events(client: httpx.AsyncClient, body: Any, path: str) -> Events:
    chunks, comments, done = [], 0, False
    async with client.stream("POST", path, json=body) as response:
        async for line in response.aiter_lines():
            comments += line.startswith(":")
            if line.startswith("data: "):
                assert not done, "something came after [DONE]"
                done = line == "data: [DONE]"
                if not done:
                    chunks.append(json.loads(line[6:]))
        return Events(response.status_code, response.headers, chunks, done, comments)


@pytest.fixture
def streamed() -> Callable[..., Awaitable[Events]]:
    """Asks for a stream and reads it whole."""

    async def ask(server: Any, path: str = "/v1/chat/completions", **fields: Any) -> Events:
        body: dict[str, Any] = {"stream": True, **fields}
        if path.endswith("chat/completions"):
            body.setdefault("messages", [{"role": "user", "content": "Hello there"}])
        return await read_events(server.client, body, path)

    return ask


@pytest.fixture
def listener() -> Listener:
    return Listener()


@pytest.fixture
def notes() -> Notes:
    return Notes()


@pytest.fixture
def new_notes() -> type[Notes]:
    return Notes


@pytest.fixture
def until() -> Callable[[Callable[[], bool]], Awaitable[None]]:
    """Waits until something is so; fails when it never is."""

    async def wait(condition: Callable[[], bool]) -> None:
        for _ in range(2000):
            if condition():
                return
            await asyncio.sleep(0.005)
        raise AssertionError("it never came to be")

    return wait
