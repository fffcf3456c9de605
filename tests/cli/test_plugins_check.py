"""``hookline plugins check`` runs plugins, in a process of their own; ``doctor`` runs none."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import Result

from hookline.cli.plugin_doctor import LOOKS_FINE

Run = Callable[..., Result]
Install = Callable[..., None]

HOOK = "from hookline import hookimpl\nclass Plugin:\n    @hookimpl\n"
FINE = HOOK + "    async def admit(self): ...\n"
CRASHES = HOOK + "    def lifespan(self): raise OSError('no disk')\n"
NO_COMMANDS = HOOK + "    def commands(self, cli): raise OSError('no terminal')\n"
KILLS = "import os\nos.kill(os.getpid(), 9)\n"
EXITS = "import os\nos._exit(3)\n"
HANGS = "import time\ntime.sleep(600)\n"


@pytest.fixture(autouse=True)
def site_of_children(
    install: Install, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[None]:
    """Processes that are started see what is installed here."""
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path / "site"), *sys.path]))
    yield


NO_USE = "its commands cannot be used: "
SERVES = HOOK + "    def commands(self, cli): cli.command('serve')(lambda: None)\n"
GREETS = HOOK + "    def commands(self, cli): cli.command('greet')(lambda: None)\n"
ROUTE = """
    def routes(self):
        from quart import Blueprint
        blueprint = Blueprint(__name__, __name__)
        blueprint.get("/v1/notes/{variable}")(lambda **_: "")
        return blueprint
"""


def place(name: str, line: int) -> str:
    return f" ({Path.cwd().parent}/site/installed_{name}.py, line {line})"


def configure(*names: str, more: str = "") -> None:
    Path("hookline.toml").write_text(f"plugins = {json.dumps(names)}\nserver.port = 1\n{more}")


def test_each_is_loaded_and_started(run: Run, install: Install) -> None:
    install("fine", FINE)
    install("crashes", CRASHES)
    install("commands", NO_COMMANDS)
    configure("fine", "crashes", "commands")
    result = run("plugins", "check")
    assert result.exit_code == 1
    rows = [row.split("\t") for row in result.stdout.splitlines()]
    assert rows == [
        ["fine", "active", "1.5", ""],
        ["crashes", "failed", "1.5", "cannot start: OSError: no disk" + place("crashes", 4)],
        ["commands", "failed", "1.5", NO_USE + "OSError: no terminal" + place("commands", 4)],
    ]
    (alone,) = json.loads(run("plugins", "check", "fine", "--json").stdout)
    assert (alone["state"], alone["hooks"]) == ("active", ["admit"])
    assert "crashes" not in sys.modules


def test_those_that_take_the_process_down_are_found(run: Run, install: Install) -> None:
    install("fine", FINE)
    install("kills", KILLS)
    install("exits", EXITS)
    configure("fine", "kills", "exits")
    fine, kills, exits = json.loads(run("plugins", "check", "--json").stdout)
    assert fine["state"] == "active"
    assert kills["reason"] == "took the process down (signal 9)"
    assert exits["reason"] == "took the process down (exit code 3)"


def test_the_others_are_tried_together_again(run: Run, install: Install) -> None:
    install("needs", FINE + "    requires = {'fine'}\n")
    install("fine", FINE)
    install("kills", KILLS)
    configure("needs", "kills", "fine", more='essential = ["fine"]\n')
    reports = json.loads(run("plugins", "check", "--json").stdout)
    assert [(r["name"], r["state"]) for r in reports] == [
        ("needs", "active"),
        ("kills", "failed"),
        ("fine", "active"),
    ]


def test_one_that_is_asked_about_has_the_others_beside_it(run: Run, install: Install) -> None:
    install("needs", FINE + "    requires = {'fine'}\n")
    install("fine", FINE)
    configure("fine")
    result = run("plugins", "check", "needs")
    assert result.stdout == "needs\tactive\t1.5\t\n"


def test_what_two_claim_is_told(run: Run, install: Install) -> None:
    install("one", GREETS + "    @hookimpl" + ROUTE.format(variable="<name>"))
    install("two", GREETS)
    install("three", HOOK + ROUTE.format(variable="<string:id>"))
    install("four", SERVES)
    configure("one", "two", "three", "four")
    told = {r["name"]: r["reason"] for r in json.loads(run("plugins", "check", "--json").stdout)}
    there = "is there already, from"
    assert told == {
        "one": None,
        "two": f"{NO_USE}'greet' {there} the plugin 'one'",
        "three": f"its routes cannot be used: GET /v1/notes/<> {there} the plugin 'one'",
        "four": f"{NO_USE}'serve' {there} Hookline",
    }


def test_a_start_that_is_refused_is_told(run: Run, install: Install) -> None:
    install("crashes", CRASHES)
    configure("crashes", more='essential = ["crashes"]\n')
    result = run("plugins", "check")
    assert result.exit_code == 1
    assert "Error: The essential plugin 'crashes' cannot start: OSError: no disk" in result.stderr


def test_one_that_hangs_is_given_up(run: Run, install: Install) -> None:
    install("hangs", HANGS)
    configure("hangs")
    result = run("plugins", "check", "--timeout", "0.1")
    assert result.exit_code == 1
    assert "hangs\tfailed\t\tdid not start within 0.1 s" in result.stdout


def test_unknown_names_are_refused(run: Run, install: Install) -> None:
    configure()
    result = run("plugins", "check", "toolz")
    assert result.stderr == "Error: There is no plugin 'toolz'. Did you mean 'tools'?\n"


# doctor


def doctor(run: Run) -> tuple[int, list[list[str]]]:
    result = run("plugins", "doctor")
    return result.exit_code, [row.split("\t") for row in result.stdout.splitlines()]


def test_a_healthy_installation(run: Run, install: Install) -> None:
    install("fine", FINE)
    configure("fine")
    code, rows = doctor(run)
    assert code == 0
    assert ["ok", "plugin fine", f"on: {LOOKS_FINE}"] in rows
    assert ["ok", "server", "none is running on port 1"] in rows
    assert {state for state, *_ in rows} == {"ok"}


def test_everything_that_is_wrong_is_told(run: Run, install: Install, tmp_path: Path) -> None:
    install("broken", "class Plugin(:")
    install("one", FINE + "    before = {'two'}\n" + KILLS)
    install("two", FINE + "    before = {'one'}\n")
    metadata = tmp_path / "site" / "one-1.5.dist-info" / "METADATA"
    metadata.write_text(
        metadata.read_text()
        + "Requires-Dist: pydantic<1\nRequires-Dist: not-there>=2\n"
        + "Requires-Dist: no; extra == 'x'\n"
    )
    configure("*", "broken", "one", "two", "-structured", "-tools")
    code, rows = doctor(run)
    assert code == 1
    told = {(state, part): detail for state, part, detail in rows}
    assert "SyntaxError" in told["failed", "plugin broken"]
    warnings = [
        detail for state, part, detail in rows if (state, part) == ("warning", "plugin one")
    ]
    assert len(warnings) == 2
    assert "pydantic is" in warnings[0] and "<1 is wanted" in warnings[0]
    assert warnings[1] == "not-there is not installed; install it with: pip install 'not-there>=2'"
    order = told["warning", "order"]
    assert "two before one: 'plugins' names them the other way round" in order


def test_a_name_that_matches_nothing_is_told(run: Run, install: Install) -> None:
    configure("toolz")
    code, rows = doctor(run)
    assert code == 1
    refusals = [
        detail for state, part, detail in rows if [state, part] == ["failed", "configuration"]
    ]
    (refusal,) = refusals
    assert "'plugins': There is no plugin 'toolz'. Did you mean 'tools'?" in refusal
    as_json = json.loads(run("plugins", "doctor", "--json").stdout)
    assert as_json[0]["part"] == "environment"


def test_an_essential_plugin_that_is_off_is_told(run: Run, install: Install) -> None:
    configure("structured", more='essential = ["tools"]\n')
    code, rows = doctor(run)
    told = "hookline.toml:3: 'essential' names 'tools', which is no plugin in use."
    assert code == 1
    assert ["failed", "configuration", told] in rows
    assert run("plugins", "check").stderr == f"Error: {told}\n"
