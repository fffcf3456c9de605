"""What the commands that read or change the store have in common."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from hookline.config import Settings
from hookline.store import Store

Result = TypeVar("Result")


def on_store(settings: Settings, work: Callable[[Store], Awaitable[Result]]) -> Result:
    """Opens the store, does ``work`` on it and closes it again. Raises StartError."""

    async def opened() -> Result:
        async with Store(settings.data_dir) as store:
            return await work(store)

    return asyncio.run(opened())
