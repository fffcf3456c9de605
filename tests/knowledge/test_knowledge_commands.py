"""``hookline knowledge``, and folders that are kept in step."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner, Result

from hookline.cli import cli
from hookline.config import Settings
from hookline.kernel import Kernel
from hookline_knowledge import KnowledgeSettings
from hookline_knowledge.base import KnowledgeBase
from hookline_knowledge.cli.adding import Adding, Summary
from hookline_knowledge.cli.paths import files_of
from hookline_knowledge.cli.show import documents_of
from hookline_knowledge.cli.watching import Watched, watch_folders

Run = Callable[..., Result]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs ``hookline knowledge`` in a folder with documents, with the default embedding model."""
    for name in [name for name in os.environ if name.startswith("HOOKLINE_")]:
        monkeypatch.delenv(name)
    config = tmp_path / "hookline.toml"
    config.write_text(f'data_dir = "{tmp_path / "data"}"\nplugins = ["knowledge"]\n')
    folder = tmp_path / "docs"
    (folder / "deep").mkdir(parents=True)
    (folder / "leave.md").write_text("# Leave\nAnnual leave is thirty days a year.")
    (folder / "deep" / "pets.txt").write_text("Dogs may come to the office on Fridays.")
    (folder / "broken.pdf").write_bytes(b"%PDF-1.7 nothing")
    (folder / ".hidden").write_text("not meant")
    monkeypatch.chdir(tmp_path)

    def invoke(*args: str) -> Result:
        return CliRunner().invoke(cli, ["--config", str(config), "knowledge", *args])

    return invoke


def test_a_collection_by_command(run: Run, tmp_path: Path) -> None:
    added = run("add", "docs", "--collection", "Policies")
    assert added.exit_code == 1 and added.stdout == "Policies: 2 added, 1 failed\n"
    assert "broken.pdf: " in added.stderr
    (tmp_path / "docs" / "broken.pdf").unlink()
    (tmp_path / "docs" / "leave.md").write_text("# Leave\nAnnual leave is forty days a year.")
    again = run("add", "docs/**/*.*", "--collection", "c:1", "--json")
    assert again.exit_code == 0
    summary = json.loads(again.stdout)
    assert [Path(path).name for path in summary["added"]] == ["leave.md"]
    assert [Path(path).name for path in summary["unchanged"]] == ["pets.txt"]

    (collection,) = json.loads(run("list", "--json").stdout)
    assert collection["id"] == "c:1" and collection["documents"] == 2
    documents = json.loads(run("list", "--collection", "Policies", "--json").stdout)
    assert {document["name"] for document in documents} == {"leave.md", "pets.txt"}
    assert {document["status"] for document in documents} == {"completed"}

    found = json.loads(run("search", "how long is my vacation", "--json", "--limit", "1").stdout)
    assert found[0]["document"] == "leave.md" and "forty" in found[0]["text"]
    assert "leave.md, Leave" in run("search", "vacation", "--collection", "Policies").stdout

    assert run("reembed", "--json").exit_code == 0
    gone = run("remove", "leave.md", "--collection", "Policies", "--json")
    assert json.loads(gone.stdout)["removed"] == ["leave.md"]
    assert run("remove", "leave.md", "--collection", "Policies").exit_code == 1
    assert run("remove", "--collection", "Policies").exit_code == 1  # asks, and nobody answers
    assert run("remove", "--collection", "Policies", "--yes").exit_code == 0
    assert json.loads(run("list", "--json").stdout) == []
    assert not [path for path in (tmp_path / "data").rglob("*") if len(path.name) == 64]


@pytest.mark.parametrize(
    ("args", "word"),
    [
        (("add", "nowhere", "--collection", "n"), "nowhere"),
        (("add", "docs", "--collection", "c:9"), "c:9"),
        (("add", "docs", "--collection", "all"), "all"),
        (("add", "docs/leave.md", "--collection", "n", "--watch"), "folder"),
        (("list", "--collection", "n"), "n"),
        (("search", "x", "--collection", "n"), "n"),
        (("remove", "x", "--collection", "n"), "n"),
    ],
)
def test_commands_that_cannot_work(run: Run, args: Any, word: str) -> None:
    result = run(*args)
    assert result.exit_code and word in result.stderr and "Traceback" not in result.stderr


def test_which_files_are_meant(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("b.txt", "a.txt", "d/c.txt", ".git/config", "d/.cache"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("x")
    monkeypatch.chdir(tmp_path)
    assert [path.name for path in files_of(["."])] == ["a.txt", "b.txt", "c.txt"]
    assert [path.name for path in files_of(["b.txt", "*.txt"])] == ["b.txt", "a.txt"]
    assert [path.name for path in files_of(["**/*.txt"])] == ["a.txt", "b.txt", "c.txt"]
    assert [path.name for path in files_of([".git/config"])] == ["config"]
    with pytest.raises(click.BadParameter, match="none"):
        files_of(["none*"])


@asynccontextmanager
async def adding(tmp_path: Path, embedder: Any) -> AsyncIterator[Adding]:
    settings = Settings(data_dir=tmp_path / "data", plugins=[])
    server = Kernel(settings, plugins={"words": embedder})
    base = KnowledgeBase(KnowledgeSettings(), server)
    async with base.open():
        yield Adding(base, await base.library.find_or_create("Notes"), quiet=True)


async def test_a_folder_is_kept_in_step(tmp_path: Path, word_embedder: Any) -> None:
    folder = tmp_path / "docs"
    folder.mkdir()
    one, twin = folder / "one.txt", folder / "twin.txt"
    one.write_text("the first text")
    twin.write_text("the first text")
    async with adding(tmp_path, word_embedder) as to:
        watched = Watched(to, [folder])
        first = await watched.catch_up()
        assert len(first.added) == len(first.unchanged) == 1  # the same bytes are kept once
        assert await to.base.store.count() == 1
        one.unlink()
        second = await watched.catch_up()
        assert second.removed == [str(one)] and second.added == [str(twin)]
        twin.write_text("quite another text")
        assert (await watched.catch_up()).added == [str(twin)]
        assert await to.base.store.count() == 1
        assert (await watched.catch_up()) == Summary("Notes")
        assert len(word_embedder.asked) == 3


async def test_watching(tmp_path: Path, word_embedder: Any) -> None:
    folder = tmp_path / "docs"
    folder.mkdir()
    (folder / "one.txt").write_text("the first text")
    news: asyncio.Queue[Summary] = asyncio.Queue()
    async with adding(tmp_path, word_embedder) as to:
        watching = asyncio.create_task(watch_folders(to, [str(folder)], news.put_nowait))
        try:
            async with asyncio.timeout(20):
                assert (await news.get()).added == [str(folder / "one.txt")]
                (folder / "two.txt").write_text("the second text")
                assert (await news.get()).added == [str(folder / "two.txt")]
        finally:
            watching.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await watching


async def test_a_name_that_is_no_text_is_told(tmp_path: Path, word_embedder: Any) -> None:
    folder = tmp_path / "docs"
    folder.mkdir()
    (folder / os.fsdecode(b"bad\xff.txt")).write_text("the first text")
    (folder / "a\u202eb.txt").write_text("the second text")
    async with adding(tmp_path, word_embedder) as to:
        summary = await to.add([str(folder)])
        assert len(summary.added) == 1
        ((path, reason),) = summary.failed.items()
        assert path.encode() and "bad" in path and "UTF-8" in reason
        (row,) = await documents_of(to.base, "Notes")
        assert row["name"] == "ab.txt"
