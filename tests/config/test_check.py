"""Tables of plugins, checked like the settings of the core."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import pytest
from pydantic import BaseModel, ConfigDict, Field, SecretStr, field_validator

from hookline.config import Origins, load_settings, validate_plugin_table
from hookline.errors import ConfigError


class Inner(BaseModel):
    x: int = 1


class Search(BaseModel):
    """As a plugin's author would write it: nothing forbids extras."""

    depth: Literal["quick", "deep"] = "quick"
    results: int = Field(5, ge=1)
    strict_count: int = Field(1, strict=True)
    networks: list[str] = []
    folders: list[Path] = []
    headers: dict[str, str] = {}
    inner: Inner = Inner()
    api_key: SecretStr | None = None
    url: str = Field("", alias="searxng_url")

    @field_validator("networks")
    @classmethod
    def _no_star(cls, value: list[str]) -> list[str]:
        if "*" in value:
            raise ValueError("a star is no network")
        return value


def checked(text: str = "", **environ: str) -> Search:
    file = Path("hookline.toml")
    file.write_text(text)
    loaded = load_settings(file, {}, environ)
    table = loaded.settings.plugin.get("search", {})
    return validate_plugin_table("search", Search, table, loaded.origins)


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_variables_become_what_the_fields_hold(here: Path) -> None:
    search = checked(
        HOOKLINE_PLUGIN__SEARCH__DEPTH="deep",
        HOOKLINE_PLUGIN__SEARCH__RESULTS="7",
        HOOKLINE_PLUGIN__SEARCH__STRICT_COUNT="8",
        HOOKLINE_PLUGIN__SEARCH__NETWORKS="10.0.0.0/8, ::1",
        HOOKLINE_PLUGIN__SEARCH__FOLDERS='["a", "~"]',
        HOOKLINE_PLUGIN__SEARCH__HEADERS='{"A": "b"}',
        HOOKLINE_PLUGIN__SEARCH__INNER__X="3",
        HOOKLINE_PLUGIN__SEARCH__API_KEY="123",
        HOOKLINE_PLUGIN__SEARCH__SEARXNG_URL="http://a",
    )
    assert (search.depth, search.results, search.strict_count) == ("deep", 7, 8)
    assert search.networks == ["10.0.0.0/8", "::1"]
    assert search.folders == [here / "a", Path.home()]
    assert search.headers == {"A": "b"}
    assert search.inner.x == 3
    assert search.api_key is not None and search.api_key.get_secret_value() == "123"
    assert search.url == "http://a"


def test_a_files_texts_are_taken_as_they_are() -> None:
    with pytest.raises(ConfigError) as error:
        checked('[plugin.search]\nnetworks = "a, b"\nstrict_count = "8"\n')
    assert str(error.value).splitlines() == [
        "hookline.toml:3: [plugin.search] strict_count: must be a whole number, not '8'",
        'hookline.toml:2: [plugin.search] networks: must be a list, such as ["one", "another"], '
        "not 'a, b'",
    ]


def test_unknown_names_are_refused_also_where_the_model_would_ignore_them() -> None:
    with pytest.raises(ConfigError) as error:
        checked(
            "[plugin.search]\nresult = 1\n[plugin.search.inner]\ny = 1\n",
            HOOKLINE_PLUGIN__SEARCH__DEPHT="deep",
        )
    assert str(error.value).splitlines() == [
        "hookline.toml:2: [plugin.search] result: there is no such setting; did you mean results?",
        "hookline.toml:4: [plugin.search.inner] y: there is no such setting",
        "HOOKLINE_PLUGIN__SEARCH__DEPHT: there is no such setting; "
        "did you mean HOOKLINE_PLUGIN__SEARCH__DEPTH?",
    ]


def test_a_model_that_allows_extras_gets_them() -> None:
    class Open(BaseModel):
        model_config = ConfigDict(extra="allow")

    assert validate_plugin_table("open", Open, {"any": 1}).model_dump() == {"any": 1}


def test_what_a_validator_says_and_what_is_missing_is_told() -> None:
    class Needy(Search):
        token: str

    table = {"networks": ["*"]}
    with pytest.raises(ConfigError) as error:
        validate_plugin_table("needy", Needy, table)
    assert str(error.value).splitlines() == [
        "[plugin.needy] networks: a star is no network",
        "[plugin.needy] token: is required and not set",
    ]


@pytest.mark.parametrize("value", ["hunter2", 12345])
def test_secrets_are_not_repeated_in_messages(value: object) -> None:
    class Keyed(BaseModel):
        api_key: list[int]

    with pytest.raises(ConfigError) as error:
        validate_plugin_table("keyed", Keyed, {"api_key": value}, Origins())
    assert str(value) not in str(error.value)
