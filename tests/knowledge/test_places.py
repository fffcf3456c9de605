"""Where things are kept, and what is told when they are not there any more."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from hookline.config import load_settings, validate_plugin_table
from hookline_knowledge import KnowledgeSettings


@pytest.mark.parametrize(
    ("embedder", "relative"),
    [
        ("minilm", False),
        ("words", False),
        ("owner/repo", False),
        ("owner/repo:model.gguf", False),
        ("http://127.0.0.1:8080/v1", False),
        ("model.gguf", True),
        ("models/model.gguf", True),
        ("./model", True),
        ("owner/here", True),
    ],
)
def test_paths_are_relative_to_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, embedder: str, relative: bool
) -> None:
    monkeypatch.chdir("/")
    (tmp_path / "owner" / "here").mkdir(parents=True)
    (tmp_path / "minilm").mkdir()
    file = tmp_path / "hookline.toml"
    file.write_text(f'[plugin.knowledge]\nembedder = "{embedder}"\nuri = "store"\n')
    loaded = load_settings(file, {}, {})
    table = loaded.settings.plugin["knowledge"]
    found = validate_plugin_table("knowledge", KnowledgeSettings, table, loaded.origins)
    assert found.uri == str(tmp_path / "store")
    assert found.embedder == (str(tmp_path / embedder) if relative else embedder)


async def test_passages_that_are_not_there_any_more_are_told_of(
    reader: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    async with reader(uri=str(old)) as at:
        await at.collection("Notes", leave="Annual leave is thirty days.")
    caplog.clear()
    async with reader(uri=str(new)):
        assert f"{new} holds no passage of what was added, 1 document. If" in caplog.text
    shutil.copytree(old, new, dirs_exist_ok=True)
    caplog.clear()
    async with reader(uri=str(new)) as at:
        assert "holds no passage" not in caplog.text
        assert (await at.openai.vector_stores.search("Notes", query="leave")).data
