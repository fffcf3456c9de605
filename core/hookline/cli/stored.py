"""What the commands that read or change the store have in common."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

import click

from hookline.config import Settings
from hookline.errors import HooklineError
from hookline.store import Store

Result = TypeVar("Result")

json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


def on_store(settings: Settings, work: Callable[[Store], Awaitable[Result]]) -> Result:
    """Opens the store, does ``work`` on it and closes it again.

    Errors that Hookline raises on purpose end the command with their message.
    """

    async def opened() -> Result:
        async with Store(settings.data_dir) as store:
            return await work(store)

    try:
        return asyncio.run(opened())
    except HooklineError as error:
        raise click.ClickException(str(error)) from error
