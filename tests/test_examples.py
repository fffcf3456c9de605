"""Every example runs, against a server on a real port."""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hookline.engines.scripted import say

EXAMPLES = Path(__file__).parent.parent / "examples"

COMMANDS = {
    "chat.py": [sys.executable],
    "stream.py": [sys.executable],
    "agent.py": [sys.executable],
    "chat.sh": ["sh"],
    "javascript/chat.mjs": ["node"],
}
"""How each example is run."""


def test_every_example_is_here() -> None:
    files = {
        path for kind in ("py", "sh", "mjs", "js", "ts") for path in EXAMPLES.rglob(f"*.{kind}")
    }
    # the plugins are packages with tests of their own
    own = {path for path in files if not {"node_modules", "plugins"} & set(path.parts)}
    assert {path.relative_to(EXAMPLES).as_posix() for path in own} == COMMANDS.keys()


async def run(example: str, url: str) -> str:
    """What an example prints. Fails when it does."""
    runner = COMMANDS[example]
    process = await asyncio.create_subprocess_exec(
        *runner,
        str(EXAMPLES / example),
        env={**os.environ, "OPENAI_BASE_URL": f"{url}/v1"},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, err = await process.communicate()
    assert process.returncode == 0, err.decode()
    return out.decode()


def skip_unless_it_can_run(example: str) -> None:
    runner = COMMANDS[example][0]
    if shutil.which(runner) is None:
        pytest.skip(f"{runner} is not installed")
    if example == "chat.sh" and shutil.which("curl") is None:
        pytest.skip("curl is not installed")
    folder = (EXAMPLES / example).parent
    if runner == "node" and not (folder / "node_modules" / "openai").is_dir():
        pytest.skip(f"the openai package is not installed: run 'npm install' in {folder}")


@pytest.mark.parametrize("example", sorted(COMMANDS.keys() - {"agent.py"}))
async def test_it_runs_and_prints_the_answer(on_port: Any, example: str) -> None:
    skip_unless_it_can_run(example)
    asked: list[str] = []
    answer = say("Light", " scatters", ".")

    def script(prompt: str, job: Any) -> Any:
        asked.append(prompt)
        return answer(prompt, job)

    async with on_port(script=script) as server:
        printed = await run(example, server.url)
    assert asked
    if example == "chat.sh":  # prints the frames as they are
        assert '"content":"Light scatters."' in printed
        assert "data: [DONE]" in printed
    else:
        assert printed.count("Light scatters.") == len(asked)


async def test_the_agent_calls_and_answers(on_port: Any) -> None:
    call = '<tool_call>\n{"name": "multiply", "arguments": {"a":12.5,"b":48}}\n</tool_call>'

    def script(prompt: str, job: Any) -> Iterator[bytes]:
        says = "It is 600." if "<tool_response>\n600.0\n" in prompt else call
        return (bytes([byte]) for byte in says.encode())

    async with on_port(script=script, settings={"plugins": ["structured", "tools"]}) as server:
        printed = await run("agent.py", server.url)
    assert printed.splitlines() == ["multiply({'a': 12.5, 'b': 48}) = 600.0", "It is 600."]
