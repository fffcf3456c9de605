"""``hookline websearch …``."""

from __future__ import annotations

from pathlib import Path

import click

from hookline.config import Settings
from hookline_websearch.setup.searxng_settings import DEFAULT_PORT, steps, write


def add_to(cli: click.Group) -> None:
    """Adds the commands."""

    @cli.group()
    def websearch() -> None:
        """Web search."""

    @websearch.command()
    @click.option(
        "--output",
        type=click.Path(dir_okay=False, path_type=Path),
        help="Where to write; by default among Hookline's data.",
    )
    @click.option("--port", type=click.IntRange(1, 65535), default=DEFAULT_PORT, show_default=True)
    @click.option("--force", is_flag=True, help="Overwrite a file that is there.")
    @click.pass_obj
    def setup(settings: Settings, output: Path | None, port: int, force: bool) -> None:
        """Writes settings for SearXNG and says how to start it."""
        path = output or settings.data_dir / "websearch" / "searxng" / "settings.yml"
        path = path.expanduser().absolute()
        if path.exists() and not force:
            raise click.ClickException(f"{path} is there already. Overwrite it with --force.")
        try:
            write(path, port)
        except OSError as error:
            raise click.ClickException(f"Cannot write {path}: {error.strerror}.") from error
        click.echo(steps(path, port))
