"""The pages say what is so: generated parts are current, examples run, tables are complete."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import click
import pytest
from click.testing import CliRunner

import hookline
from hookline.api.bodies import Model, TimingsBody
from hookline.api.models import about_loaded
from hookline.api.schema import ChatRequest, CompletionRequest
from hookline.cli import cli
from hookline.cli.added import add_commands
from hookline.constraints import ConstraintSpec
from hookline.engine import Card, Token
from hookline.engines.scripted import say
from hookline.errors import ApiError, InvalidRequest, StartError
from hookline.hookspecs import Hooks
from hookline.stream import Delta
from hookline.testing import PluginContractTests
from hookline.testing import fixtures as kit_fixtures

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
HOOKS = {name for name, spec in vars(Hooks).items() if hasattr(spec, "hookline_spec")}


def module(path: Path) -> ModuleType:
    """A module by its file."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec and spec.loader
    loaded = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = loaded  # pydantic looks the annotations' module up
    try:
        spec.loader.exec_module(loaded)
    finally:
        del sys.modules[path.stem]
    return loaded


def page(name: str) -> str:
    return (DOCS / name).read_text(encoding="utf-8")


def blocks(text: str, language: str) -> list[str]:
    """The code blocks of a page."""
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.DOTALL | re.MULTILINE)


# Generated pages


def test_generated_pages_are_current() -> None:
    stale = [
        path.relative_to(DOCS).as_posix()
        for path, text in module(DOCS / "generate.py").pages()
        if not path.exists() or path.read_text(encoding="utf-8") != text
    ]
    assert not stale, "run: python docs/generate.py"


def test_every_hook_has_a_page_and_a_moment() -> None:
    pages = {path.stem for path in (DOCS / "hooks").glob("*.md")} - {"README"}
    assert pages == HOOKS == module(DOCS / "generate.py").MOMENTS.keys()


# Links


def markdown_files() -> list[Path]:
    return [ROOT / "README.md", *DOCS.rglob("*.md"), ROOT / "examples" / "README.md"]


@pytest.mark.parametrize("path", markdown_files(), ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_somewhere(path: Path) -> None:
    links = re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", path.read_text(encoding="utf-8"))
    assert not [link for link in links if "://" not in link and not (path.parent / link).exists()]


# The HTTP contract


def errors(kind: type[ApiError] = ApiError) -> Iterator[type[ApiError]]:
    """All classes of errors that the server itself raises."""
    for error in kind.__subclasses__():
        if error.__module__.startswith("hookline."):
            yield error
            yield from errors(error)


def test_the_http_page_names_every_field() -> None:
    text = page("http-api.md")
    card = Card("x", "x", 1, 1, True, 1)
    fields = {
        *ChatRequest.model_fields,
        *CompletionRequest.model_fields,
        *TimingsBody.model_fields,
        *about_loaded(card),
        *set(Model.model_fields) - {"id", "object", "created", "owned_by"},
    }
    assert not [name for name in fields if f"`{name}`" not in text]


def test_the_http_page_names_every_error() -> None:
    rows = re.findall(r"^\| (\d{3}) \| (.*?) \|", page("http-api.md"), re.MULTILINE)
    documented = {
        (status, code) for status, codes in rows for code in re.findall(r"`(\w+)`", codes)
    }
    raised = {(str(error.status), error.code) for error in errors() if error.code}
    assert raised <= documented
    assert {str(error.status) for error in errors()} <= {status for status, _ in rows}


async def test_the_http_page_names_every_route(in_process: Any) -> None:
    async with in_process() as server:
        paths = (await server.client.get("/openapi.json")).json()["paths"]
    described = [
        f"{method.upper()} {path}" for path, methods in paths.items() for method in methods
    ]
    assert not [route for route in described if f"`{route}`" not in page("http-api.md")]


# The command line


def test_commands_in_the_pages_exist() -> None:
    text = "\n".join(path.read_text(encoding="utf-8") for path in markdown_files())
    lines = re.findall(r"(?:^|`)hookline ((?:[a-z]+ ?)+)", text, re.MULTILINE)
    assert {line.split()[0] for line in lines} >= {"serve", "config", "keys", "check"}
    for words in {tuple(line.split()) for line in lines}:
        command = cli.get_command(click.Context(cli), words[0])
        assert command is not None, words
        if isinstance(command, click.Group) and len(words) > 1:
            assert words[1] in command.commands, words


# The example plugin


IN_A_REQUEST = {
    "authenticate",
    "admit",
    "transform",
    "template_vars",
    "render_prompt",
    "begin_answer",
    "shape_job",
    "stage",
    "opening_fields",
    "response_headers",
    "closing_fields",
    "settle",
}


@pytest.fixture
def example() -> type:
    kind = module(DOCS / "hooks" / "example.py").Example
    assert isinstance(kind, type)
    return kind


def calls(server: Any) -> dict[str, int]:
    """How often each of the example's hooks was called, as `/metrics` counts it."""
    count = partial(
        server.kernel.metrics.registry.get_sample_value, "hookline_plugin_seconds_count"
    )
    counts = {hook: count({"plugin": "example", "hook": hook}) for hook in HOOKS}
    return {hook: int(calls) for hook, calls in counts.items() if calls}


@pytest.mark.parametrize("stream", [False, True], ids=["plain", "streamed"])
async def test_every_hook_of_a_request_is_called_once(
    on_port: Any, example: type, stream: bool
) -> None:
    async with on_port(script=say("hello"), plugins={"example": example}) as server:
        before = calls(server)
        response = await server.chat("Hi", shout=True, stream=stream)
        await server.client.get("/health")  # the request is settled by then
        after = calls(server)
    assert "HELLO" in response.text
    assert '"shout":true' in response.text
    assert '"tokens_left":998' in response.text  # two tokens: the word, and the end
    assert response.headers["X-Caller"] == "anonymous"
    made = {hook: after[hook] - before.get(hook, 0) for hook in IN_A_REQUEST}
    assert made == dict.fromkeys(IN_A_REQUEST, 1)


async def test_every_other_hook_is_called(on_port: Any, example: type) -> None:
    async with on_port(plugins={"example": example}) as server:
        kernel = server.kernel
        models = (await server.client.get("/v1/models")).json()["data"]
        about = (await server.client.get("/v1/example")).json()
        embedder = await kernel.embedder("letters")
        poem = await kernel.parse_document(b"Roses\n\nViolets", "short.poem")
        with pytest.raises(InvalidRequest):
            await kernel.constraint(ConstraintSpec("regex", "a"))
        assert not add_commands(kernel.plugins, group := click.Group())
        counted = calls(server)
        (example_plugin,) = [p for p in kernel.plugins.active() if p.name == "example"]
    assert "letters" in [model["id"] for model in models]
    assert about["model"] == "scripted"
    assert embedder.dimensions == 26
    assert [section.location for section in poem.sections] == ["stanza 1", "stanza 2"]
    assert "example" in group.commands
    assert counted.keys() == HOOKS - IN_A_REQUEST - {"create_engine"} | {"authenticate"}
    assert set(example_plugin.hooks) == HOOKS


async def test_the_example_refuses_to_make_its_engine(on_port: Any, example: type) -> None:
    with pytest.raises(StartError, match="example"):
        async with on_port(plugins={"example": example}, settings={"model": {"engine": "example"}}):
            pass


# The plugin of the how-to


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The package of the how-to as if it were installed."""
    (code, *_), (project, _) = (
        blocks(page("plugins.md"), "python"),
        blocks(page("plugins.md"), "toml"),
    )
    about = tomllib.loads(project)["project"]
    (tmp_path / "hookline_glossary").mkdir()
    (tmp_path / "hookline_glossary" / "__init__.py").write_text(code)
    info = tmp_path / f"hookline_glossary-{about['version']}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Name: {about['name']}\nVersion: {about['version']}\n")
    entries = "\n".join(f"{k} = {v}" for k, v in about["entry-points"]["hookline.plugins"].items())
    (info / "entry_points.txt").write_text(f"[hookline.plugins]\n{entries}\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    yield tmp_path
    sys.modules.pop("hookline_glossary", None)


@pytest.mark.usefixtures("installed")
async def test_the_plugin_of_the_how_to_works(in_process: Any) -> None:
    settings = tomllib.loads(blocks(page("plugins.md"), "toml")[1])
    async with in_process(settings=settings) as server:
        plugins = (await server.client.get("/health")).json()["plugins"]
        asked = [{"role": "user", "content": "What is in the barn?"}]
        job = (await server.client.post("/v1/tokenize", json={"messages": asked})).json()
        answer = (await server.chat("What is in the barn?", glossary=True)).json()
    (glossary,) = [plugin for plugin in plugins if plugin["name"] == "glossary"]
    assert (glossary["state"], glossary["fields"]) == ("active", ["glossary"])
    assert answer["usage"]["prompt_tokens"] > job["count"]


async def test_the_stage_of_the_how_to_works(in_process: Any) -> None:
    scope: dict[str, Any] = {}
    exec(compile(blocks(page("plugins.md"), "python")[1], "plugins.md", "exec"), scope)  # noqa: S102
    async with in_process(plugins={"loud": scope["LoudPlugin"]}) as server:
        answer = (await server.chat("hello there")).json()
    assert answer["choices"][0]["message"]["content"] == "HELLO THERE"


def test_the_stage_that_holds_back_crosses_borders_of_tokens() -> None:
    scope: dict[str, Any] = {}
    exec(compile(blocks(page("plugins.md"), "python")[2], "plugins.md", "exec"), scope)  # noqa: S102
    pieces = ["The ba", "rn is no b", "arnacle but a bar", "."]
    tokens = [Token(number, piece) for number, piece in enumerate(pieces)]
    stage = scope["RenamePlugin"]().stage()
    passed = [list(stage.feed(Delta(token.text, tokens=(token,)))) for token in tokens]
    passed += [list(stage.feed(Delta("barn", finish="stop")))]
    deltas = [delta for some in passed for delta in some]
    text = "The data centre is no data centreacle but a bar.data centre"
    assert "".join(delta.text for delta in deltas) == text
    assert "".join(delta.text for delta in passed[0]) == "The ", "no more than it must"
    assert [token for delta in deltas for token in delta.tokens] == tokens
    assert [delta.finish for delta in deltas if delta.finish] == ["stop"]
    assert deltas[-1].finish == "stop"
    assert not stage.finish()


# The tutorial, and the page on testing


def pytest_in(folder: Path) -> subprocess.CompletedProcess[str]:
    """Runs the tests of a package that is not installed, as its author would."""
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(folder)},
        check=False,
        capture_output=True,
        text=True,
    )


@pytest.mark.parametrize("text", ["as it is written", "of the tutorial"])
def test_a_new_plugin_passes_its_tests(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    monkeypatch.chdir(tmp_path)
    made = CliRunner().invoke(cli, ["plugins", "new", "glossary"], catch_exceptions=False)
    assert made.exit_code == 0, made.output
    folder = tmp_path / "hookline-glossary"
    if text == "of the tutorial":
        code, tests = blocks(page("tutorial.md"), "python")
        (folder / "hookline_glossary" / "__init__.py").write_text(code)
        (folder / "tests" / "test_glossary.py").write_text(tests)
    done = pytest_in(folder)
    assert done.returncode == 0, done.stdout


def test_the_page_on_testing_shows_tests_that_pass(tmp_path: Path) -> None:
    code, _ = blocks(page("tutorial.md"), "python")
    (tmp_path / "hookline_glossary").mkdir()
    (tmp_path / "hookline_glossary" / "__init__.py").write_text(code)
    test_of_shelf, test_of_glossary = blocks(page("testing.md"), "python")
    (tmp_path / "test_glossary.py").write_text(test_of_glossary)
    (tmp_path / "hookline_shelf.py").write_text(blocks(page("plugins.md"), "python")[3])
    (tmp_path / "test_shelf.py").write_text(test_of_shelf)
    done = pytest_in(tmp_path)
    assert done.returncode == 0, done.stdout


def test_the_page_on_testing_names_everything() -> None:
    text = page("testing.md")
    fixtures = [n for n, f in vars(kit_fixtures).items() if type(f).__name__.startswith("Fixture")]
    attributes = list(vars(PluginContractTests)["__annotations__"])
    assert len(fixtures) >= 7
    assert [name for name in (*fixtures, *attributes) if f"`{name}" not in text] == []


def test_the_front_page_shows_the_first_command() -> None:
    assert "hookline serve" in (ROOT / "README.md").read_text(encoding="utf-8")
    assert CliRunner().invoke(cli, ["--version"]).output.split()[-1] == hookline.__version__
