"""``hookline plugins doctor``: looks for what is wrong, and says what to do. Runs no plugin."""

from __future__ import annotations

import platform
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, distribution
from typing import Literal

import click
from packaging.requirements import InvalidRequirement, Requirement

from hookline import __version__
from hookline.api.schema import ChatRequest
from hookline.cli import loaded_settings
from hookline.cli.output import SILENT, json_option, log_as_warnings, print_json, print_table
from hookline.cli.plugin_report import report
from hookline.cli.running import Running, asked_server, url_option
from hookline.config import LoadedSettings
from hookline.hookspecs import API_VERSION
from hookline.survey import Survey, Surveyed, survey

LOOKS_FINE = "looks fine from outside; 'hookline plugins check' runs it"


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that was looked at: fine, worth a look, or wrong."""

    state: Literal["ok", "warning", "failed"]
    part: str
    detail: str


@click.command()
@url_option
@json_option
@click.pass_context
def doctor(ctx: click.Context, url: str | None, as_json: bool) -> None:
    """Looks for everything that keeps plugins from working, without running any.

    Exits with 1 where something is wrong.
    """
    loaded = loaded_settings(ctx)
    findings = [*examine(loaded, asked_server(loaded.settings, url))]
    if as_json:
        print_json([asdict(finding) for finding in findings])
    else:
        print_table(("state", "part", "detail"), [(f.state, f.part, f.detail) for f in findings])
    if any(finding.state == "failed" for finding in findings):
        ctx.exit(1)


def examine(loaded: LoadedSettings, running: Running | None) -> Iterator[Finding]:
    """Everything that there is to say, from the environment to the single plugin."""
    here = f"hookline {__version__}, hook API {API_VERSION}, Python {platform.python_version()}"
    yield Finding("ok", "environment", here)
    yield Finding("ok", "configuration", str(loaded.file or "no file, defaults"))
    with log_as_warnings(SILENT):
        found = survey(loaded.settings, ChatRequest.model_fields)
    if found.refusal:
        yield Finding("failed", "configuration", str(found.refusal))
    yield _server(loaded, running)
    yield from _plugins(found, running)
    yield from _order(found)


def _server(loaded: LoadedSettings, running: Running | None) -> Finding:
    if running is None:
        return Finding("ok", "server", f"none is running on port {loaded.settings.server.port}")
    if not running.answers:
        return Finding("failed", "server", f"at {running.url}, but it does not answer")
    return Finding("ok", "server", f"at {running.url}")


def _plugins(found: Survey, running: Running | None) -> Iterator[Finding]:
    for name, read in found.plugins.items():
        about = report(read, running)
        broken = about["state"] in ("failed", "paused")
        state: Literal["ok", "failed"] = "failed" if broken else "ok"
        fine = LOOKS_FINE if about["state"] == "on" else "fine"
        yield Finding(state, f"plugin {name}", f"{about['state']}: {about['reason'] or fine}")
        if read.plugin.state == "active":
            yield from _requirements(name, read)


def _requirements(name: str, read: Surveyed) -> Iterator[Finding]:
    """What its distribution requires and has not: by name, or in another version."""
    for line in _required(read.plugin.distribution):
        requirement = Requirement(line)
        extras = ("", *read.plugin.about.extras)
        marker = requirement.marker
        if marker is None or any(marker.evaluate({"extra": extra}) for extra in extras):
            wrong = _wrong(requirement)
            if wrong:
                advice = f"pip install '{requirement.name}{requirement.specifier}'"
                yield Finding("warning", f"plugin {name}", f"{wrong}; install it with: {advice}")


def _required(dist: str | None) -> list[str]:
    try:
        return (distribution(dist).requires or []) if dist else []
    except (PackageNotFoundError, InvalidRequirement):
        return []


def _wrong(requirement: Requirement) -> str | None:
    try:
        version = distribution(requirement.name).version
    except PackageNotFoundError:
        return f"{requirement.name} is not installed"
    if requirement.specifier.contains(version, prereleases=True):
        return None
    return f"{requirement.name} is {version}, and {requirement.specifier} is wanted"


def _order(found: Survey) -> Iterator[Finding]:
    told = {
        f"{wish}: {why}"
        for hook in found.hooks()
        for wish, why in found.order(hook).refused.items()
        if "not in use" not in why
    }
    for line in sorted(told):
        yield Finding("warning", "order", f"not granted: {line}")
