"""The file that ``hookline config init`` writes."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field, HttpUrl

from hookline.config import Settings, commented_config, load_settings, validate_plugin_table
from hookline.config.template import toml_value


class Search(BaseModel):
    """Searches the web."""

    depth: str = Field("quick", description="How deep.")
    key: str = Field(description="Needed.")
    folder: Path = Path("here")


def uncommented(text: str) -> str:
    return re.sub(r"^#(?! )", "", text, flags=re.MULTILINE)


def loaded(text: str, tmp_path: Path) -> Settings:
    file = tmp_path / "hookline.toml"
    file.write_text(text)
    return load_settings(file, {}, {}).settings


def test_the_file_as_it_is_sets_little(tmp_path: Path) -> None:
    text = commented_config({"search": Search})
    settings = loaded(text, tmp_path)
    assert settings.quota.daily_prompts == 0
    assert "\n#daily_prompts = 100\n" in text
    default = Settings().model_dump()
    changed = {name for name, value in settings.model_dump().items() if value != default[name]}
    assert changed == {"plugin"}
    assert settings.plugin == {"search": {}}


def test_every_line_uncommented_is_valid_and_sets_everything(tmp_path: Path) -> None:
    text = uncommented(commented_config({"search": Search}))
    settings = loaded(text, tmp_path)
    for name, info in Settings.model_fields.items():
        value = getattr(settings, name)
        inner = type(value).model_fields if isinstance(value, BaseModel) else {}
        assert name in settings.model_fields_set, info
        assert not inner or set(inner) == value.model_fields_set
    assert set(settings.models) == {"another"}
    table = settings.plugin["search"] | {"key": "k"}
    assert validate_plugin_table("search", Search, table).depth == "quick"


def test_every_setting_stands_there_with_its_description() -> None:
    text = " ".join(commented_config().replace("\n#", " ").split())
    for info in Settings.model_fields.values():
        fields = getattr(info.annotation, "model_fields", {"": info})
        for field in fields.values():
            if field is not Settings.model_fields["plugin"]:
                assert field.description and field.description in text


def test_a_setting_uncommented_alone_stays_in_its_table(tmp_path: Path) -> None:
    text = commented_config().replace("#require_api_key = false", "require_api_key = true")
    assert loaded(text, tmp_path).auth.require_api_key is True


VALUES = st.recursive(
    st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: (
        st.lists(inner) | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), inner)
    ),
    max_leaves=8,
)


@given(VALUES)
def test_values_survive_the_way_through_toml(value: Any) -> None:
    assert tomllib.loads(f"x = {toml_value(value)}") == {"x": value}


def test_what_toml_cannot_hold_is_refused() -> None:
    with pytest.raises(TypeError, match="NoneType"):
        toml_value([None])


def test_defaults_that_are_objects_are_written_as_toml_has_them(tmp_path: Path) -> None:
    class Service(BaseModel):
        url: HttpUrl = HttpUrl("http://127.0.0.1:8888/")

    class Mirrors(Service):
        mirrors: list[Service] = [Service()]

    text = commented_config({"search": Mirrors}).replace("#url", "url").replace("#mirr", "mirr")
    table = loaded(text, tmp_path).plugin["search"]
    assert validate_plugin_table("search", Mirrors, table) == Mirrors()
