"""What an answer looks like: the parts that chunks and whole bodies share."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from hookline.engine import Decode, Prefill, Progress, Queued, Token, TopLogprob
from hookline.exchange import Exchange, Report
from hookline.stream import Delta, ToolCallDelta

LOWEST_LOGPROB = -9999.0
"""Stands for minus infinity, which JSON cannot say; OpenAI's own choice."""


def envelope(exchange: Exchange, kind: str) -> dict[str, Any]:
    """What every chunk and every body begins with."""
    return {
        "id": exchange.id,
        "object": kind,
        "created": exchange.created,
        "model": exchange.model,
    }


def finite(logprob: float | None) -> float:
    """A log probability that JSON can hold."""
    return logprob if logprob is not None and math.isfinite(logprob) else LOWEST_LOGPROB


def chat_logprobs(tokens: Iterable[Token]) -> dict[str, Any]:
    """The ``logprobs`` object of a chat choice."""
    return {
        "content": [
            {
                **_logprob(token.raw, token.logprob),
                "top_logprobs": [_logprob(top.raw, top.logprob) for top in token.top],
            }
            for token in tokens
            if not token.special
        ],
        "refusal": None,
    }


def _logprob(raw: bytes, logprob: float | None) -> dict[str, Any]:
    return {
        "token": raw.decode(errors="replace"),
        "logprob": finite(logprob),
        "bytes": list(raw),
    }


def completion_logprobs(tokens: Sequence[Token], offset: int) -> dict[str, Any]:
    """The ``logprobs`` object of a raw completion, whose text begins at ``offset``."""
    body: dict[str, list[Any]] = {
        "tokens": [],
        "token_logprobs": [],
        "top_logprobs": [],
        "text_offset": [],
    }
    for token in tokens:
        if token.special:
            continue
        body["tokens"].append(token.raw.decode(errors="replace"))
        body["token_logprobs"].append(finite(token.logprob))
        body["top_logprobs"].append({_text(top): finite(top.logprob) for top in token.top})
        body["text_offset"].append(offset)
        offset += len(token.text)
    return body


def _text(top: TopLogprob) -> str:
    return top.raw.decode(errors="replace")


def is_content(delta: Delta) -> bool:
    """Whether a delta's tokens belong to the answer's text, which is what logprobs are of."""
    return delta.channel == "content" and delta.tool_call is None and bool(delta.tokens)


def delta_body(delta: Delta) -> dict[str, Any]:
    """The ``delta`` object of a chat chunk."""
    if delta.channel == "reasoning":
        return {"reasoning_content": delta.text} if delta.text else {}
    if delta.tool_call is not None:
        call = delta.tool_call
        function: dict[str, Any] = {"arguments": call.arguments}
        if call.name is not None:
            function["name"] = call.name
        body: dict[str, Any] = {"index": call.index, "function": function}
        if call.id is not None:
            body |= {"id": call.id, "type": "function"}
        return {"tool_calls": [body]}
    return {"content": delta.text} if delta.text else {}


def progress_body(progress: Progress) -> dict[str, Any]:
    """The ``progress`` object of a chunk."""
    match progress:
        case Queued(position):
            return {"phase": "queue", "position": position}
        case Prefill(done, total):
            return {"phase": "prefill", "done": done, "total": total}
        case Decode(tokens, decode_ms):
            return {"phase": "decode", "tokens": tokens, "decode_ms": round(decode_ms, 3)}


def report_body(report: Report) -> dict[str, Any]:
    """The ``progress`` object of what a plugin reports."""
    told = {"phase": report.phase, "step": report.step, "detail": report.detail}
    return {key: value for key, value in told.items() if value is not None}


@dataclass(slots=True)
class Written:
    """The message of one choice, put together from its deltas."""

    content: list[str] = field(default_factory=list)
    reasoning: list[str] = field(default_factory=list)
    calls: dict[int, dict[str, Any]] = field(default_factory=dict)
    tokens: list[Token] = field(default_factory=list)
    reasoned: bool = False

    def add(self, delta: Delta) -> None:
        """Takes the next delta."""
        if delta.tool_call is not None:
            self._add_call(delta.tool_call)
        elif delta.channel == "reasoning":
            self.reasoned = True
            self.reasoning.append(delta.text)
        else:
            self.content.append(delta.text)
            self.tokens += delta.tokens

    def message(self) -> dict[str, Any]:
        """The ``message`` object of a chat choice."""
        content = "".join(self.content)
        message: dict[str, Any] = {
            "role": "assistant",
            "content": content if content or not self.calls else None,
            "refusal": None,
            "annotations": [],
        }
        if self.reasoned:
            message["reasoning_content"] = "".join(self.reasoning)
        if self.calls:
            message["tool_calls"] = [self.calls[index] for index in sorted(self.calls)]
        return message

    def _add_call(self, part: ToolCallDelta) -> None:
        call = self.calls.setdefault(
            part.index,
            {"id": part.id, "type": "function", "function": {"name": part.name, "arguments": ""}},
        )
        call["function"]["arguments"] += part.arguments
