"""``hookline plugins check``: loads and starts the plugins, in a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from hookline.choice import unknown, wanted
from hookline.cli import loaded_settings
from hookline.cli.output import json_option, print_json, print_table
from hookline.config import LoadedSettings
from hookline.errors import PluginError
from hookline.plugin_sources import all_sources

Report = Mapping[str, Any]


@click.command()
@click.argument("names", nargs=-1)
@click.option("--timeout", default=120.0, show_default=True, help="Seconds that it may take.")
@json_option
@click.pass_context
def check(ctx: click.Context, names: tuple[str, ...], timeout: float, as_json: bool) -> None:
    """Loads and starts the plugins, or those called NAMES, and says how it went.

    This runs their code, in another process, without a model. Exits with 1 where one fails.
    """
    loaded = loaded_settings(ctx)
    sources = all_sources(loaded.settings)
    for name in names:
        if name not in sources:
            raise PluginError(unknown(name, sources))
    asked = names or wanted(loaded.settings, sources)
    reports = [*probed(loaded, asked, timeout)]
    if as_json:
        print_json(reports)
    else:
        rows = [(r["name"], r["state"], r["version"], r["reason"]) for r in reports]
        print_table(("plugin", "state", "version", "reason"), rows)
    if any(report["state"] == "failed" for report in reports):
        ctx.exit(1)


def probed(loaded: LoadedSettings, names: Sequence[str], timeout: float) -> Iterator[Report]:
    """What becomes of each plugin. Where they take the process down, each is tried by itself."""
    result = _probe(loaded, names, timeout)
    if isinstance(result, str) and len(names) > 1:
        for name in names:
            yield from probed(loaded, [name], timeout)
    elif isinstance(result, str):
        yield {"name": names[0], "state": "failed", "version": None, "reason": result}
    else:
        yield from (report for report in result if report["name"] in names)


def _probe(loaded: LoadedSettings, names: Sequence[str], timeout: float) -> list[Report] | str:
    """The reports, or in one line why there are none."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        command = [sys.executable, "-m", "hookline.cli.probe", report, loaded.file or "", *names]
        try:
            done = subprocess.run(  # noqa: S603
                [*map(str, command)],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=timeout,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return f"did not start within {timeout:g} s"
        if not report.exists():
            return f"took the process down ({_ending(done)})"
        told = json.loads(report.read_text(encoding="utf-8"))
    return str(told["refusal"]) if told["refusal"] else list(told["plugins"])


def _ending(done: subprocess.CompletedProcess[bytes]) -> str:
    last = done.stderr.decode(errors="replace").strip().rpartition("\n")[2]
    how = f"signal {-done.returncode}" if done.returncode < 0 else f"exit code {done.returncode}"
    return f"{how}: {last}" if last else how
