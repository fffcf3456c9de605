"""How fast an ExLlama engine answers, and whether answers alone and in batches are the same bits.

    python bench/gpu/speed.py FOLDER [--engine exllamav3] [--tokens 128] [--json]

For 1, 4, 16 and 32 requests at once: the time to the first token and tokens a second, of a prompt
of 64 tokens that nobody asked before, greedy and with temperature and top-p (whose sampling runs on
the CPU). Then: of 8 prompts, the tokens and logprobs of each alone and among the others.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import statistics
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from hookline.config import ModelSettings
from hookline.engine import Job, Sampling, Token
from hookline.engines.exllama import ExLlamaEngine
from hookline.engines.exllama_folder import ModelFolder
from hookline.engines.exllama_library import Version

CLIENTS = (1, 4, 16, 32)
PROMPT = 64
SAMPLINGS = {"greedy": Sampling(), "sampled": Sampling(temperature=0.8, top_p=0.95, seed=1)}


@asynccontextmanager
async def loaded(folder: Path, version: Version) -> AsyncIterator[ExLlamaEngine]:
    """The engine with room for all clients."""
    engine = ExLlamaEngine(
        version,
        ModelFolder.read(folder),
        model_id=folder.name,
        settings=ModelSettings(context=1024, parallel=max(CLIENTS), exact=False),
        max_queue=64,
    )
    await engine.load(lambda share: None)
    try:
        yield engine
    finally:
        await engine.close()


async def ask(engine: ExLlamaEngine, job: Job) -> tuple[float, float, list[Token]]:
    """Seconds to the first token and to the last, and the tokens."""
    began = time.perf_counter()
    first = 0.0
    tokens: list[Token] = []
    async for piece in engine.submit(job):
        if piece.tokens and not tokens:
            first = time.perf_counter() - began
        tokens += piece.tokens
    return first, time.perf_counter() - began, tokens


def prompts(engine: ExLlamaEngine) -> Iterator[list[int]]:
    """Prompts that differ from the first token on."""
    size = engine.card.vocabulary
    for number in itertools.count(1):
        yield [(number * 7919 + place * 104729) % (size - 200) + 100 for place in range(PROMPT)]


async def speed(engine: ExLlamaEngine, tokens: int) -> dict[str, dict[str, float]]:
    """Milliseconds to the first token and tokens a second, by clients and sampling."""
    fresh = prompts(engine)
    figures: dict[str, dict[str, float]] = {}
    for clients, (name, sampling) in itertools.product(CLIENTS, SAMPLINGS.items()):
        jobs = [
            Job(next(fresh), max_tokens=tokens, sampling=sampling, ignore_end=True)
            for _ in range(clients)
        ]
        began = time.perf_counter()
        answers = await asyncio.gather(*(ask(engine, job) for job in jobs))
        seconds = time.perf_counter() - began
        figures[f"{clients} at once, {name}"] = {
            "first_ms": statistics.median(first for first, _, _ in answers) * 1000,
            "tokens_s": sum(len(said) for _, _, said in answers) / seconds,
        }
    return figures


async def exactness(engine: ExLlamaEngine, tokens: int) -> dict[str, int]:
    """How many of the prompts have the same tokens, and the same logprobs to the bit."""
    chosen = list(itertools.islice(prompts(engine), 1000, 1008))

    def job(prompt: list[int]) -> Job:
        return Job(prompt, max_tokens=tokens, logprobs=0, ignore_end=True)

    alone = [(await ask(engine, job(prompt)))[2] for prompt in chosen]
    together = [said for _, _, said in await asyncio.gather(*(ask(engine, job(p)) for p in chosen))]
    pairs = list(zip(alone, together, strict=True))
    return {
        "prompts": len(chosen),
        "same_tokens": sum([t.id for t in a] == [t.id for t in b] for a, b in pairs),
        "same_bits": sum([t.logprob for t in a] == [t.logprob for t in b] for a, b in pairs),
    }


async def measure(folder: Path, version: Version, tokens: int) -> dict[str, Any]:
    """All figures, after a warm-up."""
    async with loaded(folder, version) as engine:
        await ask(engine, Job([1, 2, 3], max_tokens=16, ignore_end=True))
        return {
            "engine": version,
            "model": folder.name,
            "speed": await speed(engine, tokens),
            "exactness": await exactness(engine, tokens),
        }


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--engine", choices=["exllamav2", "exllamav3"], default="exllamav3")
    parser.add_argument("--tokens", type=int, default=128)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    figures = asyncio.run(measure(arguments.folder, arguments.engine, arguments.tokens))
    if arguments.json:
        print(json.dumps(figures))
        return
    print(f"{figures['model']}, {figures['engine']}")
    for name, about in figures["speed"].items():
        print(f"  {name:22} {about['first_ms']:8.1f} ms {about['tokens_s']:9.1f} tokens/s")
    print(f"  alone and together: {figures['exactness']}")


if __name__ == "__main__":
    main()
