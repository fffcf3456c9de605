"""``hookline plugins``."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from click.testing import Result

Run = Callable[..., Result]
Install = Callable[..., None]

SEARCH = """
    from pydantic import BaseModel, Field
    from hookline import hookimpl

    class SearchSettings(BaseModel):
        depth: str = Field("quick", description="How deep to search.")
        api_key: str | None = None

    class SearchFields(BaseModel):
        search_the_shop: bool = Field(False, description="Search first.")

    class Plugin:
        "Searches the shop."
        settings_model = SearchSettings
        request_fields = SearchFields

        def __init__(self, settings):
            pass

        @hookimpl
        async def transform(self, exchange):
            pass
"""


def test_list_shows_states_with_reasons(run: Run, install: Install) -> None:
    install("search", SEARCH)
    install("broken", "import nothing_like_this")
    install("idle", SEARCH)
    Path("hookline.toml").write_text('plugins = ["broken", "search"]\n')
    result = run("plugins", "list")
    assert result.exit_code == 0
    rows = {row.split("\t")[0]: row.split("\t")[1:] for row in result.stdout.splitlines()}
    assert list(rows)[:2] == ["broken", "search"]
    assert rows["search"] == ["active", "1.5", ""]
    assert rows["broken"][0] == "failed"
    assert "nothing_like_this" in rows["broken"][2]
    assert rows["idle"][0] == "off"
    as_json = json.loads(run("plugins", "list", "--json").stdout)
    assert [plugin["state"] for plugin in as_json[:2]] == ["failed", "active"]


def test_list_still_lists_where_the_choice_of_plugins_is_refused(
    run: Run, install: Install
) -> None:
    install("search", SEARCH)
    Path("hookline.toml").write_text('plugins = ["serch"]\n')
    result = run("plugins", "list")
    assert result.exit_code == 1
    assert result.stdout.startswith("search\toff\t1.5\tnot loaded")
    assert "'serch'" in result.stderr
    assert "search" in result.stderr


def test_info_shows_hooks_fields_and_settings_with_secrets_covered(
    run: Run, install: Install
) -> None:
    install("search", SEARCH)
    Path("hookline.toml").write_text('plugins = ["search"]\n[plugin.search]\napi_key = "hunter2"\n')
    result = run("plugins", "info", "search")
    assert result.exit_code == 0
    assert "hunter2" not in result.output
    for line in (
        "description\tSearches the shop.",
        "state\tactive",
        "version\t1.5",
        "hooks\ttransform",
        "field search_the_shop\tFalse  Search first.",
        "setting depth\t'quick'  How deep to search.",
        "setting api_key\t'********'",
    ):
        assert line in result.stdout.splitlines()
    as_json = json.loads(run("plugins", "info", "search", "--json").stdout)
    assert as_json["settings"]["depth"]["default"] == "quick"
    assert as_json["settings"]["api_key"]["value"] == "********"


def test_info_of_an_unknown_name_offers_a_known_one(run: Run, install: Install) -> None:
    install("search", SEARCH)
    result = run("plugins", "info", "serch")
    assert result.exit_code == 1
    assert result.stderr == "Error: There is no plugin 'serch'; did you mean search?\n"
