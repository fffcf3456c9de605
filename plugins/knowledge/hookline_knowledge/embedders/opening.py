"""Which embedder a name means, made once and when it is first needed."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from pathlib import Path
from typing import Any, TypeAlias

from hookline import StartError
from hookline.config import model_id
from hookline.hub import HubUnreachable
from hookline.models import find_model
from hookline_knowledge.embedders.backend import Backend
from hookline_knowledge.embedders.gguf import Gguf
from hookline_knowledge.embedders.local import LocalEmbedder
from hookline_knowledge.embedders.minilm import MODEL, MiniLm
from hookline_knowledge.embedders.profiles import name_of, profile_of
from hookline_knowledge.embedders.remote import RemoteEmbedder
from hookline_knowledge.problems import KnowledgeUnavailable
from hookline_knowledge.settings import KnowledgeSettings

Opened: TypeAlias = LocalEmbedder | RemoteEmbedder

MINILM = "minilm"
HUB_SECONDS = 30
"""After which the hub may be tried again, where it does not answer."""
ABILITIES = {"kind": "embeddings", "embeddings": True}


class Embedders:
    """The plugin's own embedders, by the names that the setting ``embedder`` takes."""

    def __init__(self, settings: KnowledgeSettings, data_dir: Path) -> None:
        self._settings = settings
        self._data_dir = data_dir
        self._opening: dict[str, asyncio.Task[Opened]] = {}

    async def get(self, name: str) -> Opened | None:
        """The embedder of that name; None where it is none of this plugin's.

        Raises KnowledgeUnavailable; the next call then tries again.
        """
        if not is_ours(name):
            return None
        task = self._opening.get(name)
        if task is None or (task.done() and (task.cancelled() or task.exception())):
            task = self._opening[name] = asyncio.create_task(self._open(name))
            task.add_done_callback(_seen)
        return await asyncio.shield(task)  # a caller that leaves takes no model from the others

    async def _open(self, name: str) -> Opened:
        if "://" in name:
            return await RemoteEmbedder.open(name, self._settings)
        try:
            return await asyncio.to_thread(self._load, name)
        except StartError as error:
            wait = HUB_SECONDS if isinstance(error, HubUnreachable) else None
            raise KnowledgeUnavailable(
                f"The embedding model cannot be used: {error}", retry_after=wait
            ) from error

    def _load(self, name: str) -> LocalEmbedder:
        model, backend = self._backend(name)
        profile = profile_of(model, self._settings)
        return LocalEmbedder(name_of(model, self._settings), backend, profile)

    def _backend(self, name: str) -> tuple[str, Backend]:

        threads = self._settings.embedder_threads
        if name == MINILM:
            return MODEL, MiniLm(threads=threads)
        found = find_model(name, self._data_dir)
        return model_id(name), Gguf(found.path, threads=threads)

    def about(self, name: str) -> dict[str, Any]:
        """What ``GET /v1/models`` tells of the embedder of that name, be it opened or not."""
        task = self._opening.get(name)
        if task is None or not task.done() or task.cancelled() or task.exception():
            return {"id": self._expected_id(name), "loaded": False, **ABILITIES}
        embedder = task.result()
        size = {"dimensions": embedder.dimensions, "max_tokens": embedder.max_tokens}
        return {"id": embedder.name, "loaded": True, **ABILITIES, **size}

    def _expected_id(self, name: str) -> str:
        if name == MINILM:
            return name_of(MODEL, self._settings)
        if "://" in name:
            return self._settings.embedder_model or name
        return name_of(model_id(name), self._settings) if is_ours(name) else name

    async def close(self) -> None:
        """Frees all models, also one that is just being loaded."""
        for task in self._opening.values():
            await _closed(task)
        self._opening.clear()


async def _closed(opening: Awaitable[Opened]) -> None:
    try:
        embedder = await opening
    except (KnowledgeUnavailable, asyncio.CancelledError):
        return
    await embedder.close()


def _seen(task: asyncio.Task[Opened]) -> None:
    """Marks a failure as seen, also where every caller has left meanwhile."""
    if not task.cancelled():
        task.exception()


def is_ours(name: str) -> bool:
    """Whether a name means a model of this plugin, and not another plugin's embedder."""
    return name == MINILM or "/" in name or name.endswith(".gguf")
