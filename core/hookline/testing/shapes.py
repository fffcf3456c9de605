"""What every answer must look like, whoever gives it: OpenAI's shapes, and the contract's."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pydantic import ValidationError

from hookline.api.bodies import ChatCompletion, Error

Body = Mapping[str, Any]
FINISHES = ("stop", "length", "tool_calls", "cancelled")


class WrongShape(AssertionError):
    """An answer is not what clients may rely on."""


def check_error(body: Any) -> None:
    """Raises WrongShape unless this is OpenAI's error body."""
    _fits(Error, body)
    _require(len(body) == 1, f"an error body holds 'error' and nothing else, not {set(body)}")


def check_answer(body: Any) -> None:
    """Raises WrongShape unless this is a chat answer."""
    _fits(ChatCompletion, body)
    indexes = [choice["index"] for choice in body["choices"]]
    _require(indexes == list(range(len(indexes))), f"choices are numbered from 0, not {indexes}")
    _check_usage(body["usage"])
    _check_sources(body)
    for choice in body["choices"]:
        _check_message(choice["message"], choice["finish_reason"])


def check_chunks(chunks: Sequence[Body]) -> None:
    """Raises WrongShape unless these are the chunks of one chat answer, first to last."""
    _require(bool(chunks), "a stream holds at least one chunk")
    for key in ("id", "created", "model"):
        values = {chunk.get(key) for chunk in chunks}
        _require(len(values) == 1, f"'{key}' is the same in all chunks, not {values}")
    for chunk in chunks:
        _require(chunk.get("object") == "chat.completion.chunk", f"not a chunk: {chunk}")
    with_choice = [chunk for chunk in chunks if chunk.get("choices")]
    _require(
        len(chunks) - len(with_choice) <= 1 and with_choice == list(chunks[: len(with_choice)]),
        "only the very last chunk may be without a choice",
    )
    for index in sorted({chunk["choices"][0]["index"] for chunk in with_choice}):
        _check_choice([c["choices"][0] for c in with_choice if c["choices"][0]["index"] == index])
    last = with_choice[-1]
    _check_usage(last.get("usage"))
    _require(isinstance(last.get("timings"), Mapping), "the last chunk has 'timings'")
    for chunk in chunks:
        _check_sources(chunk)


def _check_choice(parts: Sequence[Body]) -> None:
    """One choice, from its role to its finish."""
    roles = [part["delta"]["role"] for part in parts if "role" in part["delta"]]
    _require(roles == ["assistant"], f"the role comes once in a choice, and is not {roles}")
    first = next(place for place, part in enumerate(parts) if part["delta"])
    _require("role" in parts[first]["delta"], "the first delta of a choice has the role")
    finishes = [part["finish_reason"] for part in parts]
    _require(finishes[-1] in FINISHES, f"a choice ends with {FINISHES}, not {finishes[-1]!r}")
    _require(not any(finishes[:-1]), "only the last chunk of a choice has a finish_reason")


def _check_message(message: Body, finish: str) -> None:
    calls = message.get("tool_calls") or []
    _require(message["content"] is not None or calls, "a message has content or tool calls")
    _require(bool(calls) == (finish == "tool_calls"), f"finish '{finish}' with {len(calls)} calls")
    for call in calls:
        check_tool_call(call)


def check_tool_call(call: Body) -> None:
    """Raises WrongShape unless this is a whole tool call."""
    function = call.get("function", {})
    _require(bool(call.get("id")) and call.get("type") == "function", f"not a call: {call}")
    _require(bool(function.get("name")), f"a call names its function: {call}")
    try:
        json.loads(function["arguments"])
    except (KeyError, TypeError, ValueError) as error:
        raise WrongShape(f"a call's arguments are JSON as text: {call}") from error


def _check_usage(usage: Any) -> None:
    _require(isinstance(usage, Mapping), "an answer has 'usage'")
    total = usage["prompt_tokens"] + usage["completion_tokens"]
    _require(usage["total_tokens"] == total, f"total_tokens is the sum of both: {usage}")


def _check_sources(body: Body) -> None:
    sources: Iterable[Body] = body.get("sources") or ()
    numbers = [source.get("index") for source in sources]
    _require(numbers == list(range(1, len(numbers) + 1)), f"sources are numbered 1, 2, … {numbers}")


def _fits(model: type[ChatCompletion] | type[Error], body: Any) -> None:
    try:
        model.model_validate(body)
    except ValidationError as error:
        raise WrongShape(f"{error}\n\nin {body}") from None


def _require(holds: object, otherwise: str) -> None:
    if not holds:
        raise WrongShape(otherwise)
