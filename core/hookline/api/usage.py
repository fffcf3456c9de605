"""What an answer cost: tokens and times."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from hookline.api.choices import Choice
from hookline.exchange import Exchange


def account(exchange: Exchange, choices: Sequence[Choice]) -> None:
    """Adds the choices up in the exchange's usage and timings. Each prompt counts once."""
    prompts = {id(choice.prompt): choice for choice in reversed(choices)}.values()
    exchange.usage.prompt_tokens = sum(len(choice.prompt) for choice in prompts)
    exchange.usage.cached_tokens = sum(choice.timings.cached_tokens for choice in prompts)
    exchange.usage.completion_tokens = sum(choice.predicted for choice in choices)
    first = choices[0].timings
    exchange.timings = replace(
        first,
        prompt_tokens=exchange.usage.prompt_tokens,
        cached_tokens=exchange.usage.cached_tokens,
        predicted_n=exchange.usage.completion_tokens,
        predicted_ms=max(choice.timings.predicted_ms for choice in choices),
    )


def timings_body(exchange: Exchange) -> dict[str, Any]:
    """The ``timings`` object of an answer: milliseconds, tokens, tokens a second."""
    timings = exchange.timings
    computed = timings.prompt_tokens - timings.cached_tokens
    return {
        "queue_ms": round(timings.queue_ms, 3),
        "prompt_ms": round(timings.prompt_ms, 3),
        "prompt_per_second": _rate(computed, timings.prompt_ms),
        "predicted_n": timings.predicted_n,
        "predicted_ms": round(timings.predicted_ms, 3),
        "predicted_per_second": _rate(timings.predicted_n - 1, timings.predicted_ms),
        "cached_tokens": timings.cached_tokens,
        "max_ctx": exchange.max_ctx,
        "dropped_messages": exchange.dropped_messages,
        "images": timings.images,
        "vision_ms": round(timings.vision_ms, 3),
    }


def _rate(tokens: int, ms: float) -> float:
    """Tokens a second; the first generated token begins the clock, so it is not among them."""
    return round(tokens / ms * 1000, 3) if tokens > 0 and ms > 0 else 0.0
