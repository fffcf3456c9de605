"""``hookline config``."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

from click.testing import Result

Run = Callable[..., Result]
Install = Callable[..., None]

SEARCH = """
    from pydantic import BaseModel, Field, SecretStr

    class SearchSettings(BaseModel):
        "Searches."
        depth: str = Field("quick", description="How deep to search.")
        login: SecretStr | None = None
        port: int = 1

    class Plugin:
        settings_model = SearchSettings

        def __init__(self, settings):
            pass
"""


def test_init_writes_a_file_that_works_and_keeps_one_that_is_there(run: Run) -> None:
    assert run("config", "init").stdout == "Wrote hookline.toml\n"
    text = Path("hookline.toml").read_text()
    assert "daily_prompts = 100" in text
    assert run("config", "show").exit_code == 0
    Path("hookline.toml").write_text("mine = 1")
    again = run("config", "init")
    assert again.exit_code == 1
    assert again.stderr == "Error: hookline.toml is there already; --force writes over it\n"
    assert Path("hookline.toml").read_text() == "mine = 1"
    assert run("config", "init", "--force").exit_code == 0
    assert Path("hookline.toml").read_text() == text


def test_init_writes_into_a_folder_and_says_when_it_cannot(run: Run) -> None:
    Path("folder").mkdir()
    assert run("config", "init", "folder").stdout == "Wrote folder/hookline.toml\n"
    result = run("config", "init", "nowhere/h.toml")
    assert result.exit_code == 1
    assert result.stderr.startswith("Error: nowhere/h.toml cannot be written: No such file")


def test_every_line_of_the_written_file_can_be_uncommented(run: Run) -> None:
    run("config", "init")
    file = Path("hookline.toml")
    file.write_text(re.sub(r"^#(?! )", "", file.read_text(), flags=re.MULTILINE))
    assert run("config", "path").exit_code == 0


def test_show_tells_values_and_where_they_came_from(run: Run) -> None:
    Path("hookline.toml").write_text('[model]\nsource = "./m.gguf"\n[models.big]\ncontext = 9\n')
    result = run("config", "show", HOOKLINE_SERVER__PORT="77")
    rows = {row[0]: row[1:] for row in (line.split("\t") for line in result.stdout.splitlines())}
    assert rows["server.port"] == ["77", "HOOKLINE_SERVER__PORT"]
    assert rows["model.source"] == [str(Path.cwd() / "m.gguf"), "hookline.toml:2"]
    assert rows["models.big.context"] == ["9", "hookline.toml:4"]
    assert rows["models.big.parallel"] == ["4", "default"]
    assert rows["model.exact"] == ["true", "default"]
    assert rows["plugins"] == ["", "default"]


def test_show_covers_secrets_by_type_and_by_name(run: Run, install: Install) -> None:
    install("search", SEARCH)
    Path("hookline.toml").write_text(
        'plugins = ["search"]\n[plugin.search]\nlogin = "hunter2"\nport = 5\n'
    )
    result = run("config", "show", "--json")
    assert "hunter2" not in result.output
    shown = json.loads(result.stdout)
    assert shown["file"] == "hookline.toml"
    assert shown["settings"]["plugin.search.login"] == {
        "value": "********",
        "from": "hookline.toml:3",
    }
    assert shown["settings"]["plugin.search.port"] == {"value": 5, "from": "hookline.toml:4"}
    assert shown["settings"]["plugin.search.depth"] == {"value": "quick", "from": "default"}


def test_show_covers_what_a_broken_plugin_was_given(run: Run, install: Install) -> None:
    install("search", "1 / 0")
    Path("hookline.toml").write_text(
        'plugins = ["search"]\n[plugin.search]\napi_key = "hunter2"\ndepth = "deep"\n'
    )
    result = run("config", "show")
    assert "hunter2" not in result.output
    assert "plugin.search.depth\tdeep\thookline.toml:4" in result.stdout


def test_path_prints_the_file_in_use(run: Run) -> None:
    none = run("config", "path")
    assert (none.exit_code, none.stdout) == (1, "")
    assert "config init" in none.stderr
    Path("mine.toml").touch()
    result = run("--config", "mine.toml", "config", "path")
    assert result.stdout == f"{Path.cwd() / 'mine.toml'}\n"
