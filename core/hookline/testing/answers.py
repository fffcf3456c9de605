"""Answers as tests read them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from hookline.testing.shapes import WrongShape, check_answer, check_chunks, check_tool_call


class Refused(AssertionError):
    """The server refused. ``error`` is what OpenAI's error body holds."""

    def __init__(self, status: int, error: Mapping[str, Any]) -> None:
        super().__init__(f"{status}: {error.get('message')} ({error})")
        self.status = status
        self.error = error


@dataclass(frozen=True, slots=True)
class Answer:
    """A plain answer, checked. ``body`` is all of it; the rest is about its first choice."""

    body: Mapping[str, Any]
    headers: Mapping[str, str]

    def __post_init__(self) -> None:
        check_answer(self.body)

    @property
    def message(self) -> Mapping[str, Any]:
        """The first choice's message."""
        message: Mapping[str, Any] = self.body["choices"][0]["message"]
        return message

    @property
    def text(self) -> str:
        """What it says; empty where it only calls tools."""
        return self.message["content"] or ""

    @property
    def reasoning(self) -> str:
        """What it thought."""
        return self.message.get("reasoning_content") or ""

    @property
    def tool_calls(self) -> Sequence[Mapping[str, Any]]:
        """The calls it makes."""
        return self.message.get("tool_calls") or []

    @property
    def finish(self) -> str:
        """Why it ended."""
        finish: str = self.body["choices"][0]["finish_reason"]
        return finish


@dataclass(slots=True)
class StreamedAnswer:
    """A streamed answer, read and checked. ``left`` says that the client went away on purpose: what
    is there then is not checked as a whole."""

    headers: Mapping[str, str] = field(default_factory=dict)
    chunks: list[Mapping[str, Any]] = field(default_factory=list)
    done: bool = False
    left: bool = False

    def take(self, line: str) -> None:
        """Reads one line of the stream. Raises Refused for an error event."""
        if not line or line.startswith(":"):
            return
        if self.done or not line.startswith("data: "):
            raise WrongShape(f"not an event, or one after [DONE]: {line!r}")
        if line == "data: [DONE]":
            self.done = True
            return
        data = json.loads(line.removeprefix("data: "))
        if "error" in data:
            raise Refused(200, data["error"])
        self.chunks.append(data)

    def check(self) -> None:
        """Raises WrongShape unless the stream is whole and right."""
        if not self.done:
            raise WrongShape("the stream ended without [DONE]")
        check_chunks(self.chunks)
        for call in self.tool_calls:
            check_tool_call(call)

    @property
    def text(self) -> str:
        """What it says."""
        return "".join(delta.get("content") or "" for delta in self._deltas)

    @property
    def reasoning(self) -> str:
        """What it thought."""
        return "".join(delta.get("reasoning_content") or "" for delta in self._deltas)

    @property
    def tool_calls(self) -> Sequence[Mapping[str, Any]]:
        """The calls it makes, put together from their pieces."""
        calls: dict[int, dict[str, Any]] = {}
        for delta in self._deltas:
            for part in delta.get("tool_calls") or ():
                _join(calls.setdefault(part["index"], {"function": {"arguments": ""}}), part)
        return [calls[index] for index in sorted(calls)]

    @property
    def finish(self) -> str | None:
        """Why it ended; None where the client left before."""
        reasons = [choice["finish_reason"] for choice in self._first_choice]
        return next(filter(None, reasons), None)

    @property
    def progress(self) -> list[Mapping[str, Any]]:
        """What was done meanwhile, in order."""
        return [chunk["progress"] for chunk in self.chunks if "progress" in chunk]

    @property
    def fields(self) -> Mapping[str, Any]:
        """The fields that plugins added, of all chunks together."""
        known = {"id", "object", "created", "model", "choices", "progress", "usage", "timings"}
        added = [{k: v for k, v in chunk.items() if k not in known} for chunk in self.chunks]
        return {key: value for part in added for key, value in part.items()}

    @property
    def _first_choice(self) -> list[Mapping[str, Any]]:
        choices = [choice for chunk in self.chunks for choice in chunk["choices"]]
        return [choice for choice in choices if choice["index"] == 0]

    @property
    def _deltas(self) -> list[Mapping[str, Any]]:
        return [choice["delta"] for choice in self._first_choice]


def _join(call: dict[str, Any], part: Mapping[str, Any]) -> None:
    call.update({key: part[key] for key in ("id", "type") if part.get(key)})
    function = part.get("function") or {}
    if function.get("name"):
        call["function"]["name"] = function["name"]
    call["function"]["arguments"] += function.get("arguments") or ""
