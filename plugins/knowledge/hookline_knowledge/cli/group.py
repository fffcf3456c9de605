"""The commands and their options."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import click

from hookline import ApiError
from hookline.commands import json_option, note, offline_server, print_json, print_table
from hookline.config import Settings
from hookline_knowledge.base import KnowledgeBase
from hookline_knowledge.cli import show
from hookline_knowledge.cli.adding import Adding, Summary
from hookline_knowledge.cli.reembedding import reembed_all
from hookline_knowledge.cli.removing import remove_documents
from hookline_knowledge.cli.watching import watch_folders
from hookline_knowledge.settings import KnowledgeSettings

Result = TypeVar("Result")

collection_option = click.option(
    "--collection", metavar="NAME", help="The collection: its name, or its id such as c:3."
)


def add_to(cli: click.Group, settings: KnowledgeSettings) -> None:
    """Adds the commands."""

    @cli.group(commands=[add, list_, search, remove, reembed])
    @click.pass_context
    def knowledge(context: click.Context) -> None:
        """Collections of documents that answers can come from."""
        context.obj = Session(context.obj, settings)


@dataclass(frozen=True, slots=True)
class Session:
    """The settings of a command, of the server and of the plugin."""

    server: Settings
    plugin: KnowledgeSettings

    def run(
        self, work: Callable[[KnowledgeBase], Awaitable[Result]], *, passages: bool = True
    ) -> Result:
        """Opens everything, does ``work`` and closes again; quicker without ``passages``."""
        try:
            return asyncio.run(self._opened(work, passages))
        except ApiError as error:
            raise click.ClickException(error.message) from error

    async def _opened(
        self, work: Callable[[KnowledgeBase], Awaitable[Result]], passages: bool
    ) -> Result:
        base = KnowledgeBase(self.plugin, offline_server(self.server))
        async with base.open(passages=passages):
            return await work(base)


@click.command()
@click.argument("paths", nargs=-1, required=True, metavar="PATH…")
@click.option(
    "--collection",
    required=True,
    metavar="NAME",
    help="Where to: its name, or its id such as c:3. Made where there is none of that name.",
)
@click.option("--watch", is_flag=True, help="Go on, and keep folders in step, until Ctrl-C.")
@json_option
@click.pass_obj
def add(
    session: Session, paths: tuple[str, ...], collection: str, watch: bool, as_json: bool
) -> None:
    """Adds files, folders and patterns such as 'docs/**/*.pdf'.

    What is there already and has not changed is left alone; what has changed is replaced.
    """

    async def work(base: KnowledgeBase) -> Summary:
        adding = Adding(base, await base.library.find_or_create(collection), quiet=as_json)
        summary = await adding.add(paths)
        show.summary(summary, as_json)
        if watch:
            await watch_folders(adding, paths, lambda news: show.summary(news, as_json))
        return summary

    try:
        summary = session.run(work)
    except KeyboardInterrupt:
        if not watch:
            raise
        return  # the way to end it
    if summary.failed:
        raise SystemExit(1)


@click.command("list")
@collection_option
@json_option
@click.pass_obj
def list_(session: Session, collection: str | None, as_json: bool) -> None:
    """Lists the collections, or the documents of one."""
    if collection is None:
        _print(show.COLLECTIONS, session.run(show.collections_of, passages=False), as_json)
    else:
        rows = session.run(lambda base: show.documents_of(base, collection), passages=False)
        _print(show.DOCUMENTS, rows, as_json)


@click.command()
@click.argument("query")
@collection_option
@click.option("--limit", type=click.IntRange(1, 50), default=5, help="Most passages; 5.")
@json_option
@click.pass_obj
def search(session: Session, query: str, collection: str | None, limit: int, as_json: bool) -> None:
    """Searches one collection, or all, and prints passages."""
    found = session.run(lambda base: show.passages_of(base, query, collection, limit))
    if as_json:
        print_json(found)
    else:
        show.passages(found)


@click.command()
@click.argument("documents", nargs=-1, metavar="[DOCUMENT…]")
@click.option("--collection", required=True, metavar="NAME", help="The collection.")
@click.option("--yes", is_flag=True, help="Do not ask before the whole collection is removed.")
@json_option
@click.pass_obj
def remove(
    session: Session, documents: tuple[str, ...], collection: str, yes: bool, as_json: bool
) -> None:
    """Removes documents, by name, path or id; without any, the whole collection."""
    if not documents and not yes:
        click.confirm(f"Remove the whole collection '{collection}'?", abort=True, err=True)
    gone = session.run(lambda base: remove_documents(base, collection, documents))
    if as_json:
        print_json(gone)
    else:
        note(f"Removed {', '.join(gone['removed']) or 'nothing'} from '{gone['collection']}'.")


@click.command()
@collection_option
@json_option
@click.pass_obj
def reembed(session: Session, collection: str | None, as_json: bool) -> None:
    """Embeds all documents anew, with the embedding model of the settings.

    Needed once the setting 'embedder' has changed. Broken off, it goes on where it was.
    """
    summary = session.run(lambda base: reembed_all(base, collection, quiet=as_json))
    show.summary(summary, as_json)
    if summary.failed:
        raise SystemExit(1)


def _print(columns: Sequence[str], rows: list[dict[str, Any]], as_json: bool) -> None:
    if as_json:
        print_json(rows)
    elif rows:
        print_table(columns, [[row[name.replace(" ", "_")] for name in columns] for row in rows])
    else:
        note("There is nothing yet. 'hookline knowledge add PATH --collection NAME' adds files.")
