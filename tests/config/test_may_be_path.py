"""Settings that hold a path or something else."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import pytest
from pydantic import BaseModel, Field

from hookline.config import MayBePath, load_settings, validate_plugin_table
from hookline.errors import ConfigError


class Place(BaseModel):
    uri: Annotated[str | None, MayBePath(lambda text, _: "://" not in text)] = None
    model: Annotated[str, MayBePath(lambda _, path: path.exists()), Field(min_length=1)] = "small"


def test_a_text_that_may_be_a_path_is_relative_to_where_it_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    here = tmp_path
    (here / "conf" / "models").mkdir(parents=True)

    def read(text: str, **environ: str) -> tuple[str | None, str]:
        file = Path("conf/hookline.toml")
        file.write_text(f"[plugin.place]\n{text}")
        loaded = load_settings(file, {}, environ)
        table = loaded.settings.plugin.get("place", {})
        found = validate_plugin_table("place", Place, table, loaded.origins)
        return found.uri, found.model

    assert read("") == (None, "small")
    assert read('uri = "s3://b/x"\nmodel = "nowhere"') == ("s3://b/x", "nowhere")
    inside = read('uri = "store"\nmodel = "models"')
    assert inside == (str(here / "conf" / "store"), str(here / "conf" / "models"))
    assert read("", HOOKLINE_PLUGIN__PLACE__URI="~/store")[0] == str(Path.home() / "store")
    assert read("", HOOKLINE_PLUGIN__PLACE__URI="store")[0] == str(here / "store")
    with pytest.raises(ConfigError, match="at least 1 character"):
        read('model = ""')
