"""``hookline plugins check``: loads and starts the plugins, in a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
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
    in_use = wanted(loaded.settings, sources)
    asked = names or in_use
    together = list(dict.fromkeys([*in_use, *names]))  # what one needs, or takes, is another's
    reports = [report for report in probed(loaded, together, timeout) if report["name"] in asked]
    if as_json:
        print_json(reports)
    else:
        rows = [(r["name"], r["state"], r["version"], r["reason"]) for r in reports]
        print_table(("plugin", "state", "version", "reason"), rows)
    if any(report["state"] == "failed" for report in reports):
        ctx.exit(1)


def probed(loaded: LoadedSettings, names: Sequence[str], timeout: float) -> list[Report]:
    """What becomes of each plugin, in their order. Where together they take the process down, those
    that do it alone are told from the rest. Raises PluginError where one refuses the start."""
    result = _probe(loaded, names, timeout)
    if not isinstance(result, str):
        return [report for report in result if report["name"] in names]
    ends = _ends(loaded, names, timeout) if len(names) > 1 else dict.fromkeys(names, result)
    if not ends:
        return [_failed(name, f"all together: {result}") for name in names]
    rest = [name for name in names if name not in ends]
    reports = [_failed(name, how) for name, how in ends.items()]
    reports += probed(loaded, rest, timeout) if rest else []
    return sorted(reports, key=lambda report: names.index(report["name"]))


def _ends(loaded: LoadedSettings, names: Sequence[str], timeout: float) -> dict[str, str]:
    """Those plugins that take a process down by themselves, and how it ended."""
    ends: dict[str, str] = {}
    for name in names:
        with suppress(PluginError):  # one that is refused, alone or not, ended no process
            if isinstance(how := _probe(loaded, [name], timeout), str):
                ends[name] = how
    return ends


def _failed(name: str, reason: str) -> Report:
    return {"name": name, "state": "failed", "version": None, "reason": reason}


def _probe(loaded: LoadedSettings, names: Sequence[str], timeout: float) -> list[Report] | str:
    """The reports, or in one line how the process ended. Raises PluginError for a refusal."""
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
    if told["refusal"]:
        raise PluginError(told["refusal"])
    return list(told["plugins"])


def _ending(done: subprocess.CompletedProcess[bytes]) -> str:
    last = done.stderr.decode(errors="replace").strip().rpartition("\n")[2]
    how = f"signal {-done.returncode}" if done.returncode < 0 else f"exit code {done.returncode}"
    return f"{how}: {last}" if last else how
