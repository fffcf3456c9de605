"""``hookline plugins new``: a package with a plugin that works, to change into one's own."""

from __future__ import annotations

import keyword
from collections.abc import Iterator, Mapping
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from string import Template

import click

from hookline.api.schema import ChatRequest
from hookline.cli.output import json_option, print_json
from hookline.errors import PluginError
from hookline.hookspecs import API_VERSION
from hookline.plugin_sources import NAME, installed

FILES: Mapping[str, str] = {
    "pyproject.toml": "pyproject.toml",
    "README.md": "README.md",
    "$module/__init__.py": "plugin.py",
    "$module/py.typed": "",
    "tests/test_$field.py": "test.py",
    ".github/workflows/test.yml": "ci.yml",
}
"""The files of a new package, and the templates that they are written from."""


@click.command()
@click.argument("name")
@click.option(
    "--into",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path(),
    help="The folder in which the package's own is made; default: the current one.",
)
@json_option
def new(name: str, into: Path, as_json: bool) -> None:
    """Writes a package with a new plugin NAME: one hook, a test that passes, README and CI.

    Needs no network.
    """
    check_name(name)
    folder = into / f"hookline-{name}"
    words = words_of(name)
    try:
        written = [*_write(folder, words)]
    except OSError as error:
        raise PluginError(f"{error.filename} cannot be written: {error.strerror}.") from None
    if as_json:
        print_json({"plugin": name, "folder": str(folder), "files": written})
        return
    click.echo(f"Wrote {folder}: {', '.join(written)}")
    click.echo(f"Next: cd {folder} && pip install -e '.[test]' && pytest")


def check_name(name: str) -> None:
    """Raises PluginError, with what is wrong, for a name that a new plugin cannot have."""
    field = name.replace("-", "_")
    if not NAME.fullmatch(name) or not name[-1].isalnum() or "--" in name:
        raise PluginError(
            f"'{name}' is no name for a plugin: small letters, digits and '-', a letter first."
        )
    if keyword.iskeyword(field) or field in ChatRequest.model_fields:
        raise PluginError(f"'{name}' cannot be a request field: it means something already.")
    if name in installed() or find_spec(f"hookline_{field}") is not None:
        raise PluginError(f"There is a plugin '{name}' already.")


def words_of(name: str) -> dict[str, str]:
    """What the templates call things."""
    field = name.replace("-", "_")
    kind = "".join(part.capitalize() for part in field.split("_") if part)
    next_api = f"{int(API_VERSION.partition('.')[0]) + 1}"
    return {
        "name": name,
        "field": field,
        "module": f"hookline_{field}",
        "kind": kind,
        "api": API_VERSION,
        "next_api": next_api,
    }


def _write(folder: Path, words: Mapping[str, str]) -> Iterator[str]:
    """Writes all files into a folder that is not there yet, and gives their names."""
    templates = files("hookline.cli") / "templates" / "plugin"
    folder.mkdir(parents=True)
    for name, template in FILES.items():
        path = folder / Template(name).substitute(words)
        path.parent.mkdir(parents=True, exist_ok=True)
        source = (templates / f"{template}.tmpl").read_text(encoding="utf-8") if template else ""
        path.write_text(Template(source).substitute(words), encoding="utf-8")
        yield path.relative_to(folder).as_posix()
