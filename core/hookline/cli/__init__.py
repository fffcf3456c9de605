"""``hookline``: the command line.

Results go to stdout, everything else to stderr. An error that Hookline foresees is one line and
exit code 1; ``--debug`` shows where it came from.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import click
from click.exceptions import NoSuchCommand

from hookline import __version__
from hookline.config import LoadedSettings, load_settings
from hookline.errors import HooklineError

COMMANDS: Mapping[str, str] = {
    "serve": "hookline.cli.serve",
    "check": "hookline.cli.check",
    "models": "hookline.cli.models",
    "plugins": "hookline.cli.plugins",
    "install": "hookline.cli.install",
    "uninstall": "hookline.cli.install",
    "keys": "hookline.cli.keys",
    "quota": "hookline.cli.quota",
    "config": "hookline.cli.config",
}
"""The commands and their modules, imported when they are needed: each is called as its command."""

WITHOUT_SETTINGS = frozenset({"serve", "check", "config", "plugins", "install", "uninstall"})
"""Commands that read the settings themselves, or must work where they are broken."""


class Commands(click.Group):
    """Hookline's commands and those of plugins, each loaded when it is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Hookline's own in their order, then the plugins'."""
        return [*COMMANDS, *sorted(self._added(ctx))]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """A command by name; plugins are loaded only for names that are not Hookline's."""
        if cmd_name in COMMANDS:
            command = getattr(import_module(COMMANDS[cmd_name]), cmd_name)
            return command if isinstance(command, click.Command) else None
        return self._added(ctx).get(cmd_name)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command, with the settings as its ``ctx.obj`` where it wants them."""
        name = args[0]
        if self.get_command(ctx, name) is None:
            message = _of_plugin_not_in_use(ctx, name)
            raise NoSuchCommand(name, message, possibilities=self.list_commands(ctx), ctx=ctx)
        wants_help = not {"-h", "--help"}.isdisjoint(args)
        if name not in WITHOUT_SETTINGS and not wants_help:
            ctx.obj = loaded_settings(ctx).settings
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        """Runs the command; errors that are foreseen, and Ctrl-C, end it with one line."""
        if os.environ.get("NO_COLOR"):  # which click does not know, see no-color.org
            ctx.color = False
        try:
            return super().invoke(ctx)
        except HooklineError as error:
            if ctx.params["debug"]:
                raise
            for line in str(error).splitlines():
                click.secho(f"Error: {line}", fg="red", err=True)
            ctx.exit(1)
        except KeyboardInterrupt:
            click.echo("\nStopped.", err=True)
            ctx.exit(130)

    def _added(self, ctx: click.Context) -> Mapping[str, click.Command]:
        """The commands of plugins, loaded once."""
        from hookline.cli.added import plugin_commands

        key = "hookline.cli.added"
        if key not in ctx.meta:
            ctx.meta[key] = plugin_commands(lambda: loaded_settings(ctx).settings, COMMANDS)
        commands: Mapping[str, click.Command] = ctx.meta[key]
        return commands


def _of_plugin_not_in_use(ctx: click.Context, name: str) -> str | None:
    """The message for a command that is called like a plugin which is off or has failed."""
    from hookline.survey import survey

    try:
        found = survey(loaded_settings(ctx).settings).plugins.get(name)
    except HooklineError:
        return None  # warned of already
    if found is None or found.plugin.state == "active":
        return None
    reason = found.plugin.reason or "the configuration does not name it"
    return (
        f"No such command '{name}': the plugin '{name}' is {found.plugin.state} ({reason}). "
        f"'hookline plugins info {name}' says more."
    )


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--config",
    type=click.Path(path_type=Path),
    metavar="FILE",
    is_eager=True,
    help="The configuration file; default: hookline.toml here or in your configuration folder.",
)
@click.option("--debug", is_flag=True, is_eager=True, help="Show where errors came from.")
@click.version_option(__version__, prog_name="hookline")
def cli(config: Path | None, debug: bool) -> None:
    """Serves local language models with an OpenAI-compatible API, extended by plugins."""


def loaded_settings(
    ctx: click.Context, flags: Mapping[str, Any] | None = None, config: Path | None = None
) -> LoadedSettings:
    """The settings of this run: ``--config``, the environment and the command's own flags.

    ``config`` is a command's own ``--config``, which wins. Raises ConfigError.
    """
    # not there yet while --help is being processed
    config = config or ctx.find_root().params.get("config")
    return load_settings(config, flags or {}, os.environ)


def main(args: Sequence[str] | None = None) -> None:
    """Runs the command line and exits."""
    cli(args, prog_name="hookline")
