"""``hookline plugins list``, ``info`` and ``order``: nothing of a plugin is run."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
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
        api = ">=1,<2"
        requires = {"constraint"}
        after = {"transform": {"thinking"}}
        settings_model = SearchSettings
        request_fields = SearchFields

        def __init__(self, settings):
            pass

        @hookimpl
        async def transform(self, exchange):
            pass

    raise BaseException("it was run")
"""
NO_SERVER = "server.port = 1\n"


@pytest.fixture(autouse=True)
def no_server(run: Run) -> None:
    """A configuration whose port nobody listens on."""
    Path("hookline.toml").write_text(NO_SERVER)


def configure(text: str) -> None:
    Path("hookline.toml").write_text(text + NO_SERVER)


def test_list_shows_states_with_reasons(run: Run, install: Install) -> None:
    install("search", SEARCH)
    install("broken", "import nothing_like_this")
    install("idle", SEARCH)
    configure('plugins = ["broken", "search", "structured"]\n')
    result = run("plugins", "list")
    assert result.exit_code == 0
    rows = {row.split("\t")[0]: row.split("\t")[1:] for row in result.stdout.splitlines()}
    assert list(rows)[:2] == ["broken", "search"]
    assert rows["search"] == ["on", "1.5", "", "search_the_shop", "transform", "depth, api_key"]
    assert rows["broken"][0] == "failed"
    assert rows["idle"] == [
        *("off", "1.5", "not in 'plugins' of the configuration"),
        *("search_the_shop", "transform", "depth, api_key"),
    ]
    assert "No server runs on port 1" in result.stderr
    as_json = json.loads(run("plugins", "list", "--json").stdout)
    assert [plugin["state"] for plugin in as_json[:3]] == ["failed", "on", "on"]
    assert as_json[1]["settings"] == ["depth", "api_key"]


def test_list_tells_what_is_missing(run: Run, install: Install) -> None:
    install("search", SEARCH)
    configure('plugins = ["search"]\n')
    (search, *_) = json.loads(run("plugins", "list", "--json").stdout)
    assert (search["state"], search["reason"]) == (
        "failed",
        "needs a plugin that provides 'constraint', and none does",
    )


def test_list_still_lists_where_the_choice_of_plugins_is_refused(
    run: Run, install: Install
) -> None:
    install("search", SEARCH)
    configure('plugins = ["serch"]\n')
    result = run("plugins", "list")
    assert result.exit_code == 1
    rows = {row.split("\t")[0]: row.split("\t")[1:] for row in result.stdout.splitlines()}
    assert rows["search"][0] == "off"
    assert "hookline.toml:1: 'plugins': There is no plugin 'serch'" in result.stderr
    assert "Did you mean 'search'?" in result.stderr


def test_what_would_be_in_use_is_not_on_where_the_choice_is_refused(run: Run) -> None:
    configure('plugins = ["tools"]\n[plugin.gone]\ndepth = 1\n[server]\n# ')
    listed = run("plugins", "list", "--json")
    states = {plugin["name"]: plugin["state"] for plugin in json.loads(listed.stdout)}
    assert (states["tools"], states["thinking"]) == ("failed", "off")
    assert "hookline.toml:2: [plugin.gone]: There is no plugin 'gone'" in listed.stderr
    assert "hookline plugins disable gone" in listed.stderr
    found = run("plugins", "doctor")
    assert "failed\tplugin tools\tfailed: not loaded: the configuration is refused" in found.stdout


@pytest.mark.parametrize("state", ["on", "off"])
def test_info_shows_everything_with_secrets_covered(run: Run, install: Install, state: str) -> None:
    install("search", SEARCH)
    names = ["structured", "search"] if state == "on" else ["structured"]
    configure(f'plugins = {names}\nplugin.search.api_key = "hunter2"\n')
    result = run("plugins", "info", "search")
    assert result.exit_code == 0, result.output
    assert "hunter2" not in result.output
    for line in (
        "description\tSearches the shop.",
        f"state\t{state}",
        "version\t1.5",
        "distribution\tsearch",
        "hooks\ttransform",
        "api\t>=1,<2",
        "requires\tconstraint",
        "after\tthinking in transform",
        "field search_the_shop\tFalse  Search first.",
        "setting depth\t'quick'  How deep to search.",
        "setting api_key\t'********'",
    ):
        assert line in result.stdout.splitlines()
    as_json = json.loads(run("plugins", "info", "search", "--json").stdout)
    assert as_json["settings"]["depth"]["default"] == "quick"
    assert all(" " not in key for key in as_json)
    assert as_json["settings"]["api_key"]["value"] == "********"


def test_info_of_an_unknown_name_offers_a_known_one(run: Run, install: Install) -> None:
    install("search", SEARCH)
    result = run("plugins", "info", "serch")
    assert result.exit_code == 1
    assert result.stderr == "Error: There is no plugin 'serch'. Did you mean 'search'?\n"


WISHES = """
    from hookline import hookimpl

    class Plugin:
        {wish}

        @hookimpl
        async def admit(self): ...
"""


def test_order_says_why(run: Run, install: Install) -> None:
    install("one", WISHES.format(wish="after = {'two'}"))
    install("two", WISHES.format(wish="after = {'three', 'nobody'}"))
    install("three", WISHES.format(wish="before = {'structured'}"))
    configure("plugins = ['*', 'two', 'one', 'three']\n")
    result = run("plugins", "order", "admit")
    rows = [row.split("\t") for row in result.stdout.splitlines()]
    why = {name: reason for _, name, reason in rows}
    places = {name: int(place) for place, name, _ in rows}
    assert [*places.values()] == [*range(1, len(places) + 1)]
    assert places["two"] < places["one"] < places["three"] < places["structured"]
    assert why["structured"] == "stands for '*'"
    assert why["one"] == "named in 'plugins'; wishes after two"
    assert "wishes after nobody, but nobody is not in use" in why["two"]
    assert "wishes after three, but 'plugins' names them the other way round" in why["two"]
    as_json = json.loads(run("plugins", "order", "admit", "--json").stdout)
    assert [row["plugin"] for row in as_json] == list(places)


def test_order_of_an_unknown_hook_offers_a_known_one(run: Run) -> None:
    result = run("plugins", "order", "tranform")
    assert result.exit_code == 1
    assert result.stderr == "Error: There is no hook 'tranform'; did you mean transform?\n"


def test_hooks_that_plugins_add_have_an_order_too(run: Run) -> None:
    configure("plugins = ['structured', 'tools']\n")
    result = run("plugins", "order", "tool_formats")
    assert (result.exit_code, result.stdout) == (0, "")
    assert "No plugin in use has the hook" in result.stderr


def test_a_broken_configuration_is_told_by_line(run: Run) -> None:
    Path("hookline.toml").write_text("plugins = [\n")
    for command in (["list"], ["info", "tools"], ["doctor"], ["enable", "tools"]):
        result = run("plugins", *command)
        assert result.exit_code == 1
        assert result.stderr.startswith("Error: hookline.toml:")
