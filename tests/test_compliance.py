"""An independent checker of OpenAI's chat API, run against a server on a real port."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Iterable
from typing import Any

from hookline import Job
from hookline.engines.scripted import Line

KNOWN_DIFFERENCES = {
    "chat-error-handling": "'model' may be left out here; the checker wants that refused",
    "chat-reasoning-summary": "skipped: the checker asks it of OpenAI's own models only",
}


CALL = '<tool_call>\n{"name": "get_weather", "arguments": {"location":"Rome"}}\n</tool_call>'


def script(prompt: str, job: Job) -> Iterable[Line]:
    """Greets, or calls where it must."""
    return ("Hello", " there", "!") if job.grammar is None else tuple(CALL)


async def comply(url: str) -> list[dict[str, Any]]:
    """What the checker found, case by case."""
    options = ("--format", "openai-chat", "--base-url", f"{url}/v1", "--api-key", "none", "--json")
    checker = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "llm_comply.cli", *options,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    out, err = await checker.communicate()
    assert out, err.decode()
    results: list[dict[str, Any]] = json.loads(out)["results"]
    return results


async def test_only_known_differences(on_port: Any) -> None:
    plugins = ["thinking", "structured", "tools", "vision"]
    about = {"settings": {"plugins": plugins}, "engine": {"vision": True}}
    async with on_port(script=script, **about) as server:
        results = await comply(server.url)
    failed = {case["id"]: case["errors"] for case in results if case["status"] != "passed"}
    assert failed.keys() == KNOWN_DIFFERENCES.keys(), failed
    assert len(results) > len(failed)
    assert not [case["warnings"] for case in results if case.get("warnings")]
