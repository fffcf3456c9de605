"""``hookline plugins enable`` and ``disable``: the file is edited, and nothing else in it."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from hookline.config import load_settings
from hookline.discovery import load_plugins

Run = Callable[..., Result]
Install = Callable[..., None]

FINE = "class Plugin: ...\n"


def file(text: str = "") -> Path:
    path = Path("hookline.toml")
    if text:
        path.write_text(text)
    return path


def state(name: str) -> str:
    """The state of a plugin that the file leads to."""
    return load_plugins(load_settings(file(), {}, {}).settings).found[name].state


def test_the_file_is_made_where_there_is_none(run: Run, install: Install) -> None:
    install("mine", FINE)
    result = run("plugins", "enable", "mine")
    assert result.exit_code == 0, result.output
    assert result.stdout == "mine is on in hookline.toml. A server that runs must be restarted.\n"
    assert file().read_text() == 'plugins = ["*", "mine"]\n'
    assert state("mine") == "active"


def test_comments_and_lines_stay(run: Run, install: Install) -> None:
    install("mine", FINE)
    text = (
        '# my server\nplugins = [\n    "tools",  # calls\n    "structured",\n]\n\n'
        "[server]\nport = 1  # free\n"
    )
    file(text)
    run("plugins", "enable", "mine")
    run("plugins", "disable", "structured")
    assert file().read_text() == text.replace('"structured"', '"mine"')


@pytest.mark.parametrize(
    ("before", "command", "after"),
    [
        (None, "disable tools", ["*", "-tools"]),
        (["*"], "disable tools", ["*", "-tools"]),
        (["*", "-tools"], "enable tools", ["*"]),
        (["-tools"], "enable tools", ["tools"]),
        (["thinking"], "enable tools", ["thinking", "tools"]),
        (["thinking", "tools"], "disable tools", ["thinking"]),
        (["tools", "*"], "disable tools", ["*", "-tools"]),
        (["tools"], "disable tools", []),
        (["tools"], "enable tools", ["tools"]),
        (["thinking"], "disable tools", ["thinking"]),
        (["*", "gone"], "disable gone", ["*"]),
        (["*", "-gone"], "disable gone", ["*"]),
        (["*", "gone"], "disable tools", ["*", "gone", "-tools"]),
    ],
)
def test_the_list_is_edited(
    run: Run, before: list[str] | None, command: str, after: list[str]
) -> None:
    file("" if before is None else f"plugins = {json.dumps(before)}\n")
    result = run("plugins", *command.split())
    assert result.exit_code == 0, result.output
    assert tomllib.loads(file().read_text())["plugins"] == after


def test_what_is_so_already_is_told_and_nothing_written(run: Run) -> None:
    result = run("plugins", "enable", "tools", "--json")
    assert json.loads(result.stdout)["changed"] is False
    assert not file().exists()
    assert run("plugins", "enable", "tools").stdout == "tools is on already.\n"


def test_unknown_names_are_refused(run: Run) -> None:
    for command in ("enable", "disable"):
        result = run("plugins", command, "toolz")
        assert result.exit_code == 1
        assert result.stderr == "Error: There is no plugin 'toolz'. Did you mean 'tools'?\n"
    assert not file().exists()


def test_a_variable_that_wins_is_told(run: Run) -> None:
    result = run("plugins", "disable", "tools", HOOKLINE_PLUGINS="tools,thinking")
    assert result.exit_code == 1
    assert "HOOKLINE_PLUGINS says which plugins are on" in result.stderr


def test_the_file_that_is_named_is_edited_with_its_permissions(run: Run, tmp_path: Path) -> None:
    other = tmp_path / "other.toml"
    other.write_text("")
    other.chmod(0o640)
    run("--config", str(other), "plugins", "disable", "tools")
    assert tomllib.loads(other.read_text())["plugins"] == ["*", "-tools"]
    assert other.stat().st_mode & 0o777 == 0o640
    assert not file().exists()


def test_a_file_that_cannot_be_written_is_told(run: Run, tmp_path: Path) -> None:
    file("port = 1\n".replace("port = 1", "essential = []"))
    (Path(".hookline.toml.new")).mkdir()
    result = run("plugins", "disable", "tools")
    assert result.exit_code == 1
    assert "hookline.toml cannot be written" in result.stderr


def test_the_list_takes_the_place_of_its_comment(run: Run) -> None:
    run("config", "init")
    before = file().read_text()
    run("plugins", "disable", "tools")
    assert file().read_text() == before.replace('#plugins = ["*"]\n', 'plugins = ["*", "-tools"]\n')


def test_a_comment_in_a_table_is_no_place_for_the_list(run: Run) -> None:
    file("[server]\n# plugins = []\nport = 1\n")
    run("plugins", "disable", "tools")
    assert tomllib.loads(file().read_text()) == {
        "plugins": ["*", "-tools"],
        "server": {"port": 1},
    }


def test_the_table_of_a_plugin_that_is_gone_becomes_a_comment(run: Run) -> None:
    file('[plugin.gone]\ndepth = 1  # deep\n\n[plugin."gone".inner]\na = 1\n\n[server]\nport = 1\n')
    result = run("plugins", "disable", "gone")
    assert result.exit_code == 0, result.output
    assert "[plugin.gone] in hookline.toml is a comment now" in result.stdout
    assert file().read_text() == (
        "# [plugin.gone]\n# depth = 1  # deep\n\n"
        '# [plugin."gone".inner]\n# a = 1\n\n[server]\nport = 1\n'
    )
    assert run("plugins", "list").exit_code == 0


def test_settings_that_are_no_table_are_left_to_a_person(run: Run) -> None:
    file("plugin.gone.depth = 1\n")
    result = run("plugins", "disable", "gone")
    assert result.exit_code == 1
    assert "take the settings of the plugin 'gone' out by hand" in result.stderr
    assert file().read_text() == "plugin.gone.depth = 1\n"
