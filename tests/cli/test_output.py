"""Tables, sizes, and logs as warnings."""

from __future__ import annotations

import logging
import sys

import pytest

from hookline.cli.output import SILENT, human_size, log_as_warnings, print_table


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
