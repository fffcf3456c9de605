"""Keeps count of the tokens that every caller used."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import click
from quart import Blueprint

from hookline import Exchange, Server, hookimpl
from hookline.commands import json_option, print_json, print_table
from hookline.config import Settings
from hookline_ledger.book import Book

FILE = "ledger.sqlite3"


class Ledger:
    """The plugin."""

    def __init__(self) -> None:
        self._book: Book | None = None

    @hookimpl
    @asynccontextmanager
    async def lifespan(self, server: Server) -> AsyncIterator[None]:
        """Opens the book, and closes it in the end."""
        self._book = await asyncio.to_thread(Book, server.data_dir / FILE)
        try:
            yield
        finally:
            self._book.close()

    @hookimpl
    async def settle(self, exchange: Exchange) -> None:
        """Writes down what the request used, however it ended."""
        if self._book is not None:
            await asyncio.to_thread(self._book.add, exchange.caller, exchange.usage)

    @hookimpl
    def routes(self, server: Server) -> Blueprint:
        """``GET /v1/ledger``."""
        blueprint = Blueprint("ledger", __name__)

        @blueprint.get("/v1/ledger")
        async def ledger() -> dict[str, object]:
            """What every caller used, the greatest user first."""
            assert self._book is not None, "requests come after lifespan"
            return {"object": "list", "data": await asyncio.to_thread(self._book.entries)}

        return blueprint

    @hookimpl
    def commands(self, cli: click.Group) -> None:
        """``hookline ledger``."""
        cli.add_command(show)


@click.command("ledger")
@json_option
@click.pass_obj
def show(settings: Settings, as_json: bool) -> None:
    """Shows what every caller used."""
    book = Book(settings.data_dir / FILE)
    try:
        entries = book.entries()
    finally:
        book.close()
    if as_json:
        print_json(entries)
    else:
        columns = ["caller", "requests", "prompt_tokens", "completion_tokens"]
        print_table(columns, [[str(entry[column]) for column in columns] for entry in entries])
