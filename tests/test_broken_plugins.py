"""Plugins that are broken in every way: plain chat works beside each, and says which it is."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from pathlib import Path
from textwrap import dedent, indent
from typing import Any

import pytest
from click.testing import CliRunner

from hookline.cli import cli
from hookline.engines.scripted import say
from hookline.testing import check_answer, check_chunks

Start = Callable[..., AbstractAsyncContextManager[Any]]

HEAD = """
import asyncio
from pydantic import BaseModel
from hookline import hookimpl
"""


@dataclass(frozen=True)
class Broken:
    """A plugin's source, its settings, and words that the reason must have.

    ``seen`` is what the source alone tells; the rest shows only at work. ``warned`` says that its
    part is missing from an answer, which the answer then tells.
    """

    source: str
    words: str
    seen: bool = False
    warned: bool = False
    settings: dict[str, Any] = field(default_factory=dict)


def plugin(body: str, head: str = "") -> str:
    """The source of a plugin with these hooks and attributes."""
    return HEAD + dedent(head) + "\nclass Plugin:\n" + indent(dedent(body), "    ")


BROKEN = {
    "syntax-error": Broken(
        "class Plugin(:", "broken_syntax_error.py, line 1: SyntaxError", seen=True
    ),
    "missing-dependency": Broken(
        "import meteorology_that_is_missing\nclass Plugin: ...",
        "needs 'meteorology_that_is_missing'",
        seen=True,
    ),
    "wrong-colour": Broken(
        plugin("@hookimpl\ndef transform(self, exchange): ..."), "'async def'", seen=True
    ),
    "no-self": Broken(
        plugin("@hookimpl\nasync def transform(exchange): ..."),
        "'transform' needs 'self' as its first argument",
        seen=True,
    ),
    "no-context-manager": Broken(
        plugin("@hookimpl\nasync def lifespan(self): yield"),
        "'@asynccontextmanager' between '@hookimpl' and 'async def'",
        seen=True,
    ),
    "unknown-name": Broken(
        plugin("@hookimpl\nasync def admit(self): ...", "from hookline import Exchanged"),
        "Exchanged",
        seen=True,
    ),
    "no-settings-model": Broken(
        plugin("def __init__(self, settings): ...\n@hookimpl\nasync def admit(self): ..."),
        "its constructor needs 'settings', but it has no settings_model",
    ),
    "crash-in-the-constructor": Broken(
        plugin(
            "def __init__(self): self.place = {}['place']\n@hookimpl\nasync def admit(self): ..."
        ),
        "broken_crash_in_the_constructor.py, line 7)",
    ),
    "stage-gives-none": Broken(
        plugin(
            "@hookimpl\ndef stage(self): return self\n"
            "def feed(self, delta): ...\ndef finish(self): return ()"
        ),
        "TypeError in stage",
        warned=True,
    ),
    "wrong-argument": Broken(
        plugin("@hookimpl\nasync def transform(self, exchnge): ..."), "'exchnge'", seen=True
    ),
    "clash": Broken(
        plugin(
            "request_fields = Fields\n@hookimpl\nasync def admit(self): ...",
            "class Fields(BaseModel):\n    temperature: float = 0.0",
        ),
        "'temperature' is taken by the core",
        seen=True,
    ),
    "bad-settings": Broken(
        plugin(
            "settings_model = Settings\ndef __init__(self, settings): ...\n"
            "@hookimpl\nasync def admit(self): ...",
            "class Settings(BaseModel):\n    depth: int = 3",
        ),
        "depth",
        settings={"depth": "deep"},
    ),
    "crash-at-start": Broken(
        plugin("@hookimpl\ndef lifespan(self): raise OSError('no disk')"), "OSError"
    ),
    "crash-in-a-hook": Broken(
        plugin("@hookimpl\nasync def transform(self): raise KeyError('no key')"),
        "KeyError",
        warned=True,
    ),
    "hang-in-a-hook": Broken(
        plugin("@hookimpl\nasync def transform(self): await asyncio.sleep(600)"),
        "did not answer within 0.1 s",
        warned=True,
    ),
    "crash-in-a-stage": Broken(
        plugin(
            "@hookimpl\ndef stage(self): return self\n"
            "def feed(self, delta): raise ValueError('no')\ndef finish(self): return ()"
        ),
        "ValueError",
        warned=True,
    ),
    "crash-in-routes": Broken(
        plugin("@hookimpl\ndef routes(self): raise OSError('no routes')"), "OSError: no routes"
    ),
    "exit-at-start": Broken(
        plugin("@hookimpl\ndef lifespan(self): raise SystemExit(4)"), "SystemExit: 4"
    ),
    "hang-at-start": Broken(
        plugin(
            "@hookimpl\n@asynccontextmanager\nasync def lifespan(self):\n"
            "    await asyncio.sleep(600)\n    yield",
            "from contextlib import asynccontextmanager",
        ),
        "did not answer within 0.1 s",
    ),
    "exit-on-import": Broken("import sys\nsys.exit('enough')", "SystemExit"),
    "exit-in-a-hook": Broken(
        plugin("@hookimpl\nasync def transform(self): raise SystemExit(3)"),
        "SystemExit",
        warned=True,
    ),
    "cancels-itself": Broken(
        plugin("@hookimpl\nasync def transform(self): raise asyncio.CancelledError"),
        "CancelledError",
        warned=True,
    ),
    "wrong-answer": Broken(
        plugin("@hookimpl\ndef closing_fields(self): return {'x': object()}"),
        "PydanticSerializationError",
        warned=True,
    ),
    "wrong-header": Broken(
        plugin("@hookimpl\ndef response_headers(self): return {'X-Lines': 'a\\nb'}"),
        "TypeError",
        warned=True,
    ),
}


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder that packages are installed into."""
    before = set(sys.modules)
    monkeypatch.syspath_prepend(tmp_path)
    yield tmp_path
    for name in [name for name in set(sys.modules) - before if name.startswith("broken_")]:
        del sys.modules[name]


def install(site: Path, name: str, source: str) -> None:
    """Installs a package with one plugin."""
    module = f"broken_{name.replace('-', '_')}"
    (site / f"{module}.py").write_text(source)
    info = site / f"{module}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {module}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[hookline.plugins]\n{name} = {module}:Plugin\n")


def listed(config: Path) -> dict[str, dict[str, Any]]:
    """What ``hookline plugins list`` says about each plugin."""
    result = CliRunner().invoke(cli, ["--config", str(config), "plugins", "list", "--json"])
    assert result.exit_code == 0, result.output
    return {plugin["name"]: plugin for plugin in json.loads(result.stdout)}


def settings(*names: str) -> dict[str, Any]:
    """Settings with these plugins, which do not bear much."""
    tables = {name: BROKEN[name].settings for name in names if BROKEN[name].settings}
    budgets = dict.fromkeys(("hook_seconds", "transform_seconds", "start_seconds"), 0.1)
    return {"plugins": list(names), "plugin": tables, "isolation": budgets}


def chunks_of(stream: str) -> list[dict[str, Any]]:
    return [json.loads(line.removeprefix("data: ")) for line in stream.split("\n\n")[:-2]]


@pytest.mark.parametrize("name", BROKEN)
async def test_plain_chat_works_beside_it(name: str, site: Path, in_process: Start) -> None:
    broken = BROKEN[name]
    install(site, name, broken.source)
    async with in_process(script=say("It", " works"), settings=settings(name)) as server:
        plain = (await server.chat()).raise_for_status().json()
        chunks = chunks_of((await server.chat(stream=True)).raise_for_status().text)
        health = (await server.client.get("/health")).raise_for_status().json()
    check_answer(plain)
    check_chunks(chunks)
    assert plain["choices"][0]["message"]["content"] == "It works"
    text = [c["choices"][0]["delta"].get("content", "") for c in chunks if c["choices"]]
    assert "".join(text) == "It works"
    for answer in (plain, chunks[-1]):
        warnings = answer.get("warnings", [])
        assert [warning["plugin"] for warning in warnings] == [name] * broken.warned
    (told,) = [plugin for plugin in health["plugins"] if plugin["name"] == name]
    assert broken.words in f"{told['reason']} {told['last_failure']}"
    assert told["state"] == ("active" if broken.warned else "failed")


async def test_the_list_says_what_is_wrong_with_each(site: Path, on_port: Start) -> None:
    for name, broken in BROKEN.items():
        install(site, name, broken.source)
    config = site / "hookline.toml"
    async with on_port(script=say("It", " works"), settings=settings(*BROKEN)) as server:
        assert "It works" in (await server.chat()).text
        config.write_text(f"plugins = {json.dumps([*BROKEN])}\nserver.port = {port(server.url)}\n")
        told = await asyncio.to_thread(listed, config)
    for name, broken in BROKEN.items():
        assert broken.words in told[name]["reason"], name


def port(url: str) -> int:
    return int(url.rpartition(":")[2])


def test_without_a_server_the_list_says_what_the_sources_tell(site: Path) -> None:
    for name, broken in BROKEN.items():
        install(site, name, f"{broken.source}\nraise BaseException('it was run')")
    config = site / "hookline.toml"
    config.write_text(f"plugins = {json.dumps([*BROKEN])}\nserver.port = 1\n")
    told = listed(config)
    for name, broken in BROKEN.items():
        assert told[name]["state"] == ("failed" if broken.seen else "on"), name
        assert not broken.seen or broken.words in told[name]["reason"]


WITH_FIELDS = plugin(
    "request_fields = Fields\n@hookimpl\nasync def admit(self): ...",
    "class Fields(BaseModel):\n    weather: bool = False\n    temperature: float = 0.0",
)


@pytest.mark.parametrize("source", [WITH_FIELDS, f"import not_there\n{WITH_FIELDS}"])
async def test_a_request_that_asks_for_one_that_is_out_of_service_is_refused(
    source: str, site: Path, in_process: Start
) -> None:
    install(site, "forecast", source)
    async with in_process(settings={"plugins": ["forecast"]}) as server:
        refused = await server.chat(weather=True)
        fine = [await server.chat(temperature=0), await server.chat(weather=False)]
    assert refused.status_code == 400
    assert refused.json()["error"]["param"] == "weather"
    assert "'forecast', which could not start" in refused.json()["error"]["message"]
    assert [response.status_code for response in fine] == [200, 200]
