"""Tables, sizes, and logs as warnings."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable

import click
import pytest
from click.testing import CliRunner, Result

from hookline.cli import cli
from hookline.cli.output import SILENT, human_size, log_as_warnings, print_table

Run = Callable[..., Result]


def test_into_a_pipe_rows_are_plain(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(("a", "b"), [("x" * 200, None), (1, "[red]")])
    assert capsys.readouterr().out == f"{'x' * 200}\t\n1\t[red]\n"


def test_on_a_terminal_there_is_a_table(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    print_table(("name", "b"), [("[red]", 1)])
    out = capsys.readouterr().out
    assert "name" in out
    assert "[red]" in out
    assert "┃" in out


def test_names_stay_whole_and_a_narrow_terminal_gets_blocks(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    columns, rows = ("plugin", "state", "reason"), [("structured", "off", "long " * 20)]
    monkeypatch.setenv("COLUMNS", "40")
    print_table(columns, rows)
    assert "│ structured │ off   │ long long" in capsys.readouterr().out
    monkeypatch.setenv("COLUMNS", "30")
    print_table(columns, [*rows, ("tools", None, "short")])
    reason = f"  reason: {'long ' * 20}"
    shown = click.unstyle(capsys.readouterr().out)
    assert [line.rstrip() for line in shown.splitlines()] == [
        *("structured", "  state: off", reason.rstrip()),
        *("tools", "  reason: short"),
    ]


@pytest.mark.parametrize(
    ("size", "text"),
    [(0, "0 B"), (999, "999 B"), (98_362_432, "98 MB"), (4.2e9, "4 GB"), (1.25e12, "1.2 TB")],
)
def test_sizes(size: float, text: str) -> None:
    assert human_size(size) == text


def test_logs_become_warnings_of_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    log = logging.getLogger("hookline.test")
    with log_as_warnings():
        log.info("too small")
        try:
            raise RuntimeError("why")
        except RuntimeError:
            log.exception("it\nfailed")
    with log_as_warnings(SILENT):
        log.critical("shown elsewhere")
    assert capsys.readouterr().err == "Warning: it failed: RuntimeError: why\n"


@pytest.mark.parametrize("environ", [{}, {"NO_COLOR": ""}, {"NO_COLOR": "1"}])
def test_no_color_on_a_terminal(run: Run, environ: dict[str, str]) -> None:
    result = CliRunner().invoke(cli, ["keys", "revoke"], env=environ, color=True)
    assert "\x1b" not in result.output  # what click tells is never coloured
    result = CliRunner().invoke(cli, ["--config", "none.toml", "quota"], env=environ, color=True)
    assert "none.toml, named by --config, is no file" in result.output
    assert ("\x1b[31m" in result.output) is (environ.get("NO_COLOR") != "1")
