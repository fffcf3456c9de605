"""The analyst: a process of its own that analyses schemas, and can be stopped.

Analysing uses libraries that may take very long for a hostile schema, hold the interpreter's lock
meanwhile, or use up the memory. In a process they can do neither to the server.

Run as ``python -m hookline_structured.analyst``: one JSON request a line in, a line for each
answer out; the last is final.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any, TextIO

from hookline_structured import formatron_engine
from hookline_structured.analysis import Analysis, complaint_about, confirm, express
from hookline_structured.dialect import Schema
from hookline_structured.refusal import Refused

MEMORY = 2 * 2**30
"""Bytes of address space that an analyst may use."""

STACK = 2**28
"""Bytes of stack: the set algebra recurses deeply for schemas that refer to themselves."""

LINE_MAX = 64 * 2**20
"""Bytes of an answer."""


class TooLong(Exception):
    """The analyst did not answer in time, or died of what it was asked."""


class Analysts:
    """Starts analysts when they are needed and keeps one warm. One event loop only."""

    def __init__(self, seconds: float, most: int = 4) -> None:
        self._seconds = seconds
        self._free: list[asyncio.subprocess.Process] = []
        self._places = asyncio.Semaphore(most)

    async def schema(self, schema: Any) -> Analysis:
        """A schema's analysis. Raises Refused or TooLong."""
        answer = await self._ask({"kind": "json_schema", "value": schema})
        return Analysis(answer["promise"], answer["grammar"])

    async def source(self, source: str) -> None:
        """Tries a grammar in the compiler's own language. Raises Refused or TooLong."""
        await self._ask({"kind": "source", "value": source})

    async def formatron(self, schema: Schema, tokens: list[bytes]) -> str:
        """formatron's grammar for a schema, tried on a vocabulary. Raises Refused or TooLong."""
        vocabulary = [raw.hex() for raw in tokens]
        asked = {"kind": "formatron", "value": schema, "vocabulary": vocabulary}
        return str((await self._ask(asked))["source"])

    async def _ask(self, request: dict[str, Any]) -> dict[str, Any]:
        async with self._places:
            process = self._free.pop() if self._free else await self._start()
            answers: list[dict[str, Any]] = []
            try:
                async with asyncio.timeout(self._seconds):
                    await _exchange(process, request, answers)
                self._free.append(process)
            except (TimeoutError, ValueError, ConnectionError) as error:
                if not answers:
                    raise TooLong from error
            finally:
                if process not in self._free:
                    await _stop(process)
            answer = answers[-1]
        if "refused" in answer:
            raise Refused(tuple(answer["place"]), answer["refused"])
        return answer

    async def start(self) -> None:
        """Makes one analyst ready."""
        self._free.append(await self._start())

    async def _start(self) -> asyncio.subprocess.Process:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "hookline_structured.analyst"),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            limit=LINE_MAX,
        )
        try:
            if process.stdout is not None:
                await process.stdout.readline()
        except BaseException:  # the server stops while it starts: nobody else knows the process
            await _stop(process)
            raise
        return process

    async def close(self) -> None:
        """Stops all analysts."""
        while self._free:
            await _stop(self._free.pop())


async def _exchange(
    process: asyncio.subprocess.Process, request: dict[str, Any], answers: list[dict[str, Any]]
) -> None:
    """Asks, and collects answers until one is final."""
    if process.stdin is None or process.stdout is None:
        raise ConnectionError("the analyst has no pipes")
    process.stdin.write(json.dumps(request).encode() + b"\n")
    await process.stdin.drain()
    while not answers or answers[-1].get("unconfirmed"):
        answers.append(json.loads(await process.stdout.readline()))


async def _stop(process: asyncio.subprocess.Process) -> None:
    with contextlib.suppress(ProcessLookupError):
        process.kill()
    if process.stdin is not None:
        process.stdin.close()
    await process.wait()


def _answers(request: dict[str, Any]) -> Iterator[dict[str, Any]]:
    try:
        if request["kind"] == "json_schema":
            yield from _analysed(request["value"])
        elif request["kind"] == "formatron":
            yield _try_formatron(request)
        elif (complaint := complaint_about(request["value"])) is not None:
            yield {"refused": complaint, "place": []}
        else:
            yield {}
    except Refused as error:
        yield {"refused": error.reason, "place": list(error.place)}
    except RecursionError:
        yield {"refused": "it is nested too deeply", "place": []}
    except MemoryError:
        yield {"refused": "it needs too much memory", "place": []}


def _analysed(schema: Any) -> Iterator[dict[str, Any]]:
    """The forms of a schema first: whether a value can fit it at all may take too long to prove."""
    analysis, document = express(schema)
    forms = {"promise": analysis.promise, "grammar": analysis.grammar}
    yield {**forms, "unconfirmed": True}
    confirm(document)
    yield forms


def _try_formatron(request: dict[str, Any]) -> dict[str, Any]:
    try:
        source = formatron_engine.source(request["value"])
        tokens = [bytes.fromhex(raw) for raw in request["vocabulary"]]
        formatron_engine.compile_grammar(source, tokens)
    except Exception as error:  # its own checks fail as AssertionError, KeyError and others
        return {"refused": f"formatron: {error}"[:300], "place": []}
    return {"source": source}


def serve(requests: TextIO, say: Callable[[str], object]) -> None:
    """Answers until there are no more requests."""
    say("ready\n")
    for line in requests:
        for answer in _answers(json.loads(line)):
            say(json.dumps(answer) + "\n")


def main() -> None:
    """Limits the memory, then serves in a thread that has the stack."""
    with contextlib.suppress(ImportError):
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))

    def say(text: str) -> None:
        sys.stdout.write(text)
        sys.stdout.flush()

    threading.stack_size(STACK)
    thread = threading.Thread(target=serve, args=(sys.stdin, say))
    thread.start()
    thread.join()


if __name__ == "__main__":
    main()
