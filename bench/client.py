"""Asks a server as its users would, and notes when what arrived."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import httpx

Messages = list[dict[str, Any]]

WORDS = ("river", "stone", "window", "garden", "letter", "morning", "bridge", "field", "winter")


@dataclass(frozen=True)
class Answer:
    """One streamed answer: seconds to its first token (where it says nothing, to its end), tokens
    a second, how many tokens, and what."""

    first: float
    rate: float
    tokens: int
    text: str


LONG = 1475
"""Words that make a prompt of 1,500 tokens: the default model's tokenizer makes one of each."""


def prompt(kind: str, number: int, words: int = LONG) -> str:
    """A question that no other has the beginning of; ``long`` ones are full of words."""
    question = "Write a long story about a lighthouse keeper, with many details."
    if kind == "short":
        return f"{number}. {question}"
    filler = " ".join(WORDS[(place * 7 + number * 13) % len(WORDS)] for place in range(words))
    return f"{number}. {question} Use some of these words: {filler}. Begin now."


async def ask(client: httpx.AsyncClient, url: str, messages: Messages, max_tokens: int) -> Answer:
    """Streams one greedy answer. Raises HTTPStatusError for a refusal."""
    body = {
        "messages": messages,
        "max_tokens": max_tokens,
        "temperature": 0,
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    begin = time.perf_counter()
    first = last = 0.0
    texts: list[str] = []
    counted = 0
    async with client.stream("POST", f"{url}/chat/completions", json=body) as response:
        if response.is_error:
            await response.aread()
        response.raise_for_status()
        async for line in response.aiter_lines():
            chunk = parsed(line)
            if chunk is None:
                continue
            counted = (chunk.get("usage") or {}).get("completion_tokens", counted)
            text = content(chunk)
            if text or (not first and ended(chunk)):
                last = time.perf_counter()
                first = first or last
                texts.append(text)
    tokens = counted or len(texts)
    rate = (tokens - 1) / (last - first) if last > first else 0.0
    return Answer(first - begin, rate, tokens, "".join(texts))


def parsed(line: str) -> dict[str, Any] | None:
    """The chunk of a line of a stream; None for all other lines."""
    data = line.removeprefix("data: ")
    if data == line or data == "[DONE]":
        return None
    chunk: dict[str, Any] = json.loads(data)
    if "error" in chunk:
        raise RuntimeError(f"the server broke the stream off: {chunk['error']}")
    return chunk


def ended(chunk: dict[str, Any]) -> bool:
    """Whether an answer ends with this chunk, perhaps without having said anything."""
    choices = chunk.get("choices") or [{}]
    return choices[0].get("finish_reason") is not None


def content(chunk: dict[str, Any]) -> str:
    """The text that a chunk adds to the answer."""
    choices = chunk.get("choices") or [{}]
    return choices[0].get("delta", {}).get("content") or ""


@dataclass(frozen=True)
class Round:
    """What a number of clients that asked at once saw; ``seconds`` is how long all took."""

    answers: Sequence[Answer]
    seconds: float

    @property
    def total_rate(self) -> float:
        """Tokens a second, all clients together, from the first request to the last token."""
        return sum(answer.tokens for answer in self.answers) / self.seconds


async def together(url: str, questions: Sequence[Messages], max_tokens: int) -> Round:
    """Asks all questions at once, each on a connection of its own."""
    limits = httpx.Limits(max_connections=None)
    async with httpx.AsyncClient(timeout=600, limits=limits) as client:
        begin = time.perf_counter()
        asking = (ask(client, url, messages, max_tokens) for messages in questions)
        answers = await asyncio.gather(*asking)
        return Round(answers, time.perf_counter() - begin)


async def probe(url: str, stop: asyncio.Event, every: float = 0.05) -> list[float]:
    """Seconds that a GET took, again and again until told to stop."""
    seconds: list[float] = []
    async with httpx.AsyncClient(timeout=60) as client:
        while not stop.is_set():
            begin = time.perf_counter()
            (await client.get(url)).raise_for_status()
            seconds.append(time.perf_counter() - begin)
            await asyncio.sleep(every)
    return seconds
