"""The command line as a whole: help, mistakes, settings for commands, commands of plugins."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from hookline import __version__
from hookline.cli import COMMANDS
from hookline.errors import ConfigError

Run = Callable[..., Result]
Install = Callable[..., None]

GREETER = """
    import click
    from hookline import hookimpl

    class Plugin:
        @hookimpl
        def commands(self, cli):
            @cli.command()
            @click.pass_obj
            def greet(settings):
                "Greets."
                click.echo(f"hello from port {settings.server.port}")
"""

GREEDY = (
    GREETER
    + """
            @cli.command()
            def models():
                "Takes a name that is taken."
"""
)

NO_USE = "its commands cannot be used: "

BROKEN = """
    from hookline import hookimpl

    class Plugin:
        @hookimpl
        def commands(self, cli):
            raise RuntimeError("no commands today")
"""


def test_version(run: Run) -> None:
    assert run("--version").output == f"hookline, version {__version__}\n"


def test_help_lists_every_command(run: Run) -> None:
    result = run("-h")
    assert result.exit_code == 0
    for name in COMMANDS:
        assert f"\n  {name} " in result.stdout


def test_a_mistyped_command_is_answered_with_the_one_that_was_meant(run: Run) -> None:
    result = run("modls")
    assert result.exit_code == 2
    assert "No such command 'modls'. Did you mean 'models'?" in result.stderr
    assert "Did you mean 'list'?" in run("models", "lst").stderr


def test_foreseen_errors_are_one_line_each_and_exit_with_1(run: Run) -> None:
    Path("hookline.toml").write_text("[server]\nprot = 1\nport = -1\n")
    result = run("models", "list")
    assert result.exit_code == 1
    assert result.stdout == ""
    assert result.stderr.splitlines() == [
        "Error: hookline.toml:2: [server] prot: there is no such setting; did you mean port?",
        "Error: hookline.toml:3: [server] port: must be greater than or equal to 0, not -1",
    ]


def test_debug_shows_where_an_error_came_from(run: Run) -> None:
    result = run("--debug", "--config", "no.toml", "models", "list")
    assert isinstance(result.exception, ConfigError)


def test_help_works_where_the_configuration_is_broken(run: Run) -> None:
    Path("hookline.toml").write_text("nonsense")
    assert run("keys", "--help").exit_code == 0
    result = run("--help")
    assert result.exit_code == 0
    assert result.stderr.startswith("Warning: no commands of plugins: hookline.toml:1:9: ")
    assert len(result.stderr.splitlines()) == 1


def test_plugins_add_commands_which_get_the_settings(run: Run, install: Install) -> None:
    install("greeter", GREETER)
    Path("hookline.toml").write_text('plugins = ["greeter"]\n')
    result = run("greet", HOOKLINE_SERVER__PORT="77")
    assert result.stdout == "hello from port 77\n"
    help = run("--help")
    assert "greet" in help.stdout
    assert run("models", "list").exit_code == 0


def test_a_command_that_is_hookline_s_costs_a_plugin_all_of_its_own(
    run: Run, install: Install
) -> None:
    install("greedy", GREEDY)
    Path("hookline.toml").write_text('plugins = ["greedy"]\n')
    help = run("--help")
    assert "greet" not in help.stdout
    assert (
        "plugin greedy: its commands cannot be used: 'models' is there already, from Hookline"
    ) in help.stderr


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        (BROKEN, f"plugin broken: {NO_USE}RuntimeError: no commands today (/"),
        ("import nothing_like_this", "plugin broken is off: needs 'nothing_like_this'"),
        ("1 / 0", "plugin broken is off: cannot be loaded: ZeroDivisionError"),
    ],
)
def test_a_broken_plugin_costs_one_line(
    run: Run, install: Install, source: str, reason: str
) -> None:
    install("broken", source)
    install("greeter", GREETER)
    Path("hookline.toml").write_text('plugins = ["broken", "greeter"]\n')
    result = run("greet")
    assert result.stdout == "hello from port 1234\n"
    (line,) = result.stderr.splitlines()
    assert line.startswith(f"Warning: {reason}")
    assert "Traceback" not in result.stderr


def test_the_module_can_be_run(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "hookline", "--version"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout == f"hookline, version {__version__}\n"


def test_a_command_of_a_plugin_that_is_off_says_so(run: Run) -> None:
    Path("hookline.toml").write_text('plugins = ["*", "-knowledge"]\n')
    result = run("knowledge", "list")
    assert result.exit_code == 2
    assert "the plugin 'knowledge' is off" in result.stderr
    assert "hookline plugins info knowledge" in result.stderr
