"""``hookline models``: which models are here, and fetching more."""

from __future__ import annotations

import click

from hookline.cli.output import human_size, json_option, note, print_json, print_table
from hookline.config import Settings, is_path
from hookline.errors import StartError
from hookline.hub import Hub
from hookline.models import EITHER, LocalModel, ModelFile, local_models, pull_model


@click.group()
def models() -> None:
    """Models: the ones on this machine, and fetching more."""


@models.command("list")
@json_option
@click.pass_obj
def list_models(settings: Settings, as_json: bool) -> None:
    """Lists the models on this machine; --model takes the first column."""
    found = local_models(settings.data_dir, Hub())
    if as_json:
        print_json([_row(model) for model in found])
    elif found:
        rows = [(m.source, human_size(m.size), m.origin, m.path) for m in found]
        print_table(("model", "size", "from", "file"), rows)
    else:
        note("No model is here. 'hookline models pull owner/repo' fetches one.")


@models.command()
@click.argument("source", metavar="OWNER/REPO[:FILE]")
@json_option
@click.pass_obj
def pull(settings: Settings, source: str, as_json: bool) -> None:
    """Fetches a model from the Hugging Face hub into its cache.

    FILE is a file of the repository, or a quantization such as Q4_K_M, which is also what is taken
    when there is no FILE. Of a repository without GGUF all that the ExLlama engines need is
    fetched; FILE is then a branch, such as 4.0bpw.
    """
    if is_path(source) or "/" not in source:
        raise StartError(f"'{source}' is no model of the hub, which is named owner/repo[:file]")
    model = pull_model(source, Hub(), formats=EITHER)
    if as_json:
        print_json(_pulled(model))
        return
    click.echo(model.path)
    note(f"Use it with: hookline serve --model {model.id}")


def _row(model: LocalModel) -> dict[str, object]:
    return {
        "id": model.id,
        "source": model.source,
        "path": str(model.path),
        "size": model.size,
        "from": model.origin,
    }


def _pulled(model: ModelFile) -> dict[str, object]:
    mmproj = str(model.mmproj) if model.mmproj else None
    return {"id": model.id, "path": str(model.path), "mmproj": mmproj}
