"""``hookline models``. Pulling itself is tested where models are found."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from hookline.cli import models
from hookline.errors import StartError
from hookline.hub import Hub
from hookline.models import ModelFile

Run = Callable[..., Result]


def test_list_shows_what_is_here(run: Run, tmp_path: Path) -> None:
    folder = tmp_path / "models"
    folder.mkdir()
    (folder / "mine.gguf").write_bytes(b"x" * 1500)
    listed = run("models", "list", HOOKLINE_DATA_DIR=str(tmp_path)).stdout.splitlines()
    assert listed[0].startswith("smollm2-135m\t")
    assert listed[1] == f"{folder / 'mine.gguf'}\t2 kB\tfile\t{folder / 'mine.gguf'}"
    as_json = json.loads(run("models", "list", "--json", HOOKLINE_DATA_DIR=str(tmp_path)).stdout)
    assert [model["id"] for model in as_json] == ["smollm2-135m", "mine"]
    assert as_json[1]["size"] == 1500


def test_pull_prints_the_file_on_stdout_and_how_to_use_it_on_stderr(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def pull(source: str, hub: Hub, **_: object) -> ModelFile:
        assert hub == Hub()
        return ModelFile(source, Path("/hub/m.gguf"), None, "hub")

    monkeypatch.setattr(models, "pull_model", pull)
    result = run("models", "pull", "owner/repo:Q8_0")
    assert result.stdout == "/hub/m.gguf\n"
    assert result.stderr == "Use it with: hookline serve --model owner/repo:Q8_0\n"
    as_json = json.loads(run("models", "pull", "owner/repo", "--json").stdout)
    assert as_json == {"id": "owner/repo", "path": "/hub/m.gguf", "mmproj": None}


def test_pull_says_why_not(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def pull(source: str, hub: Hub, **_: object) -> ModelFile:
        raise StartError("the hub is closed")

    monkeypatch.setattr(models, "pull_model", pull)
    result = run("models", "pull", "owner/repo")
    assert (result.exit_code, result.stderr) == (1, "Error: the hub is closed\n")


@pytest.mark.parametrize("source", ["smollm2-135m", "./m.gguf", "/m.gguf"])
def test_only_models_of_the_hub_can_be_pulled(run: Run, source: str) -> None:
    result = run("models", "pull", source)
    assert result.exit_code == 1
    assert "is no model of the hub" in result.stderr
