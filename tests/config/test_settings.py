"""Which model is meant, and under which id."""

from __future__ import annotations

from pathlib import Path

import pytest

from hookline.config import ModelSettings, Settings, is_path, model_id, resolve_model


@pytest.mark.parametrize(
    ("source", "id"),
    [
        ("smollm2-135m", "smollm2-135m"),
        ("/models/Some-1.5B.Q4_K_M.gguf", "Some-1.5B.Q4_K_M"),
        ("/models/big-00001-of-00003.gguf", "big"),
        ("/models/v1.5", "v1.5"),
        ("~/m.gguf", "m"),
        ("owner/repo", "owner/repo"),
        ("owner/repo:Q4_K_M", "owner/repo:Q4_K_M"),
        ("owner/repo:file.gguf", "owner/repo:file.gguf"),
    ],
)
def test_ids_of_sources(source: str, id: str) -> None:
    assert model_id(source) == id


def test_what_exists_is_a_path_but_the_default_model_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert not is_path("owner/repo")
    (tmp_path / "owner" / "repo").mkdir(parents=True)
    (tmp_path / "smollm2-135m").mkdir()
    assert is_path("owner/repo")
    assert not is_path("smollm2-135m")


def test_a_configured_model_is_taken_whole() -> None:
    big = ModelSettings(source="owner/big", context=100)
    settings = Settings(models={"big": big}, model=ModelSettings(source="big", context=5))
    assert resolve_model(settings) == ("big", big)


def test_otherwise_the_model_table_is_the_model() -> None:
    settings = Settings(model=ModelSettings(source="/a/m.gguf"))
    assert resolve_model(settings) == ("m", settings.model)
