"""How commands print: tables on a terminal, plain columns into a pipe, JSON when asked."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

NAME_WIDTH = 24
"""So many characters of what a row is about are never folded."""

json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


def print_json(value: Any) -> None:
    """A result for programs."""
    click.echo(json.dumps(value, ensure_ascii=False, indent=2, default=str))


def print_table(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Rows for people; into a pipe they go without a header, columns parted by tabs."""
    cells = [["" if cell is None else str(cell) for cell in row] for row in rows]
    if not sys.stdout.isatty():
        for row in cells:
            click.echo("\t".join(row))
        return
    console = Console()
    # names stay whole, and headers; the texts beside them are folded
    widths = [*map(len, columns)]
    widths[0] = max(widths[0], min(max((len(row[0]) for row in cells), default=0), NAME_WIDTH))
    if sum(widths) + 3 * len(widths) + 1 > console.width:
        _print_blocks(console, columns, cells)
        return
    table = Table(show_header=any(columns))
    for column, width in zip(columns, widths, strict=True):
        table.add_column(column, overflow="fold", min_width=width)
    for row in cells:
        table.add_row(*map(Text, row))
    console.print(table)


def _print_blocks(console: Console, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Rows below each other, for a terminal that is too narrow for columns."""
    for row in rows:
        console.print(Text(row[0], "bold"), soft_wrap=True)
        for column, cell in zip(columns[1:], row[1:], strict=True):
            if cell:
                console.print(Text(f"  {column}: {cell}"), soft_wrap=True)


def note(message: str) -> None:
    """Something for the person at the terminal that is no result."""
    click.echo(message, err=True)


def warn(message: str) -> None:
    """One line about something that goes on without a part."""
    click.secho(f"Warning: {' '.join(message.split())}", fg="yellow", err=True)


def human_size(size: float) -> str:
    """Bytes as people read them, in powers of 1000."""
    for unit in ("B", "kB", "MB", "GB"):
        if size < 1000:
            return f"{size:.0f} {unit}"
        size /= 1000
    return f"{size:.1f} TB"


class _Warnings(logging.Handler):
    """Prints what is logged as warnings of one line, without tracebacks."""

    def emit(self, record: logging.LogRecord) -> None:
        error = record.exc_info[1] if record.exc_info else None
        detail = f": {type(error).__name__}: {error}" if error else ""
        warn(record.getMessage() + detail)


@contextmanager
def log_as_warnings(level: int = logging.WARNING) -> Iterator[None]:
    """Turns what Hookline logs into warnings on stderr, from ``level`` on."""
    log, handler = logging.getLogger("hookline"), _Warnings(level)
    propagate, log.propagate = log.propagate, False
    log.addHandler(handler)
    try:
        yield
    finally:
        log.removeHandler(handler)
        log.propagate = propagate


SILENT = logging.CRITICAL + 1
"""A level for `log_as_warnings` where a command shows the same itself."""
