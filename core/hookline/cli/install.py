"""``hookline install`` and ``uninstall``: pip, in the environment that Hookline runs in."""

from __future__ import annotations

import importlib
import shlex
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import PackageNotFoundError, distribution
from importlib.util import find_spec

import click

from hookline.choice import OFF, unknown
from hookline.cli import loaded_settings
from hookline.cli.output import json_option, note, print_json
from hookline.errors import ConfigError, PluginError, StartError
from hookline.plugin_sources import PluginSource, in_folder, installed

STDERR = 2
"""The file descriptor, which a process that is started shares."""

RESTART = "A server that runs must be restarted."


@click.command()
@click.argument("packages", nargs=-1, required=True)
@click.option("--upgrade", is_flag=True, help="Install the newest version.")
@json_option
@click.pass_context
def install(ctx: click.Context, packages: tuple[str, ...], upgrade: bool, as_json: bool) -> None:
    """Installs PACKAGES with pip, in this environment, and says which plugins they bring.

    A package is what pip takes: a name, a file, a folder, an address.
    """
    before = installed()
    command = pip("install", *(["--upgrade"] if upgrade else []), *packages)
    code = _run(command, quiet=as_json)
    added = sorted(_changed(before, installed()))
    if as_json:
        print_json({"command": command, "exit_code": code, "plugins": added})
    elif code == 0:
        _say_added(added)
    ctx.exit(code)


def _say_added(added: Sequence[str]) -> None:
    for name in added:
        click.echo(f"The plugin {name} is installed: hookline plugins enable {name}")
    click.echo(RESTART if added else f"No plugin is new. {RESTART}")


@click.command()
@click.argument("names", nargs=-1, required=True)
@click.option("--yes", "-y", is_flag=True, help="Ask nothing.")
@json_option
@click.pass_context
def uninstall(ctx: click.Context, names: tuple[str, ...], yes: bool, as_json: bool) -> None:
    """Uninstalls packages with pip; NAMES are theirs, or those of their plugins."""
    before, files = installed(), _files(ctx)
    packages = [_distribution(name, before, files) for name in names]
    command = pip("uninstall", *(["--yes"] if yes or as_json else []), *packages)
    code = _run(command, quiet=as_json)
    gone = sorted(before.keys() - installed().keys())
    if as_json:
        print_json({"command": command, "exit_code": code, "plugins": gone})
    elif code == 0:
        for name, places in _still_named(ctx, gone):
            click.echo(f"{places} still there for {name}: hookline plugins disable {name}")
        click.echo(RESTART)
    ctx.exit(code)


def _still_named(ctx: click.Context, gone: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Plugins that the configuration still names, each with where; then no server starts."""
    try:
        settings = loaded_settings(ctx).settings
    except ConfigError:
        return  # whatever is wrong with the file was so before
    entries = [entry.removeprefix(OFF) for entry in settings.plugins or ()]
    for name in gone:
        places = ["its name in 'plugins'"] * (name in entries)
        places += [f"its table [plugin.{name}]"] * (name in settings.plugin)
        if places:
            told = " and ".join(places)
            yield name, f"{told[0].upper()}{told[1:]} {'are' if len(places) > 1 else 'is'}"


def pip(*arguments: str) -> list[str]:
    """A command line for pip. Raises StartError where this environment has none."""
    if find_spec("pip") is None:
        raise StartError(
            f"There is no pip in {sys.prefix}. Make one: {sys.executable} -m ensurepip"
        )
    return [sys.executable, "-m", "pip", arguments[0], *arguments[1:]]


def _run(command: Sequence[str], *, quiet: bool) -> int:
    """Prints a command and runs it; ``quiet`` keeps stdout for the result."""
    note(f"$ {shlex.join(command)}")
    done = subprocess.run(command, check=False, stdout=STDERR if quiet else None)  # noqa: S603
    importlib.invalidate_caches()
    return done.returncode


def _changed(before: dict[str, PluginSource], after: dict[str, PluginSource]) -> set[str]:
    """Plugins that are new or have another version."""
    return {
        name
        for name, source in after.items()
        if name not in before or before[name].version != source.version
    }


def _files(ctx: click.Context) -> Mapping[str, PluginSource]:
    """The plugins that are single files; none where the configuration cannot be read."""
    try:
        return {
            source.name: source for source in in_folder(loaded_settings(ctx).settings.plugin_dir)
        }
    except ConfigError:
        return {}


def _distribution(
    name: str, plugins: Mapping[str, PluginSource], files: Mapping[str, PluginSource]
) -> str:
    """The package of that name, or that brings the plugin of that name. Raises PluginError where
    there is none that pip could take away."""
    source = plugins.get(name)
    if source is None and name in files:
        raise PluginError(
            f"The plugin '{name}' is a single file: delete {files[name].file}, or run: "
            f"hookline plugins disable {name}"
        )
    if source is None:
        return _package(name, plugins)
    if source.built_in:
        raise PluginError(
            f"The plugin '{name}' is a part of Hookline; 'hookline plugins disable {name}' "
            "switches it off."
        )
    return source.distribution or name


def _package(name: str, plugins: Mapping[str, PluginSource]) -> str:
    """A package that is installed, by name."""
    try:
        return distribution(name).name
    except (PackageNotFoundError, ValueError):
        offered = unknown(name, [n for n, source in plugins.items() if not source.built_in])
        raise PluginError(f"No package '{name}' is installed. {offered}") from None
