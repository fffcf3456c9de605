"""Everything of the plugin that works together, in a server or for a command."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

from hookline import Server
from hookline_knowledge.catalog import Chunking, members
from hookline_knowledge.chat.transform import Answering
from hookline_knowledge.documents import reader
from hookline_knowledge.embedding import embedder_of
from hookline_knowledge.ingest import SPARE_PLACES, Ingest
from hookline_knowledge.intake import Intake
from hookline_knowledge.library import Library
from hookline_knowledge.parsing import Parser
from hookline_knowledge.pictures.gallery import Gallery
from hookline_knowledge.search import Searcher
from hookline_knowledge.settings import KnowledgeSettings
from hookline_knowledge.store import Store
from hookline_knowledge.wording import counted

log = logging.getLogger(__name__)

FOLDER = "knowledge"
MIB = 1024 * 1024


class KnowledgeBase:
    """Files, collections, their passages, and those that read and search them.

    ``file_bytes`` is the most of a file; ``chunking`` how files are cut where nobody says;
    ``reader`` reads whatever waits.
    """

    def __init__(self, settings: KnowledgeSettings, server: Server) -> None:
        folder = server.data_dir / FOLDER
        embedder = embedder_of(server)
        self._settings = settings
        self.server = server
        self.file_bytes = settings.parsing.file_mb * MIB
        self.chunking = Chunking(settings.chunk_tokens, settings.chunk_overlap_tokens)
        self._is_store_open = False
        self.store = Store(_uri(settings, folder), settings.storage_options)
        self.gallery = _gallery(settings, folder)
        self.parser = Parser(settings.parsing, spare=SPARE_PLACES)
        self.embedder = embedder
        self.library = Library(folder, self._drop, server.clock)
        self.searcher = Searcher(self.library, self.store, embedder, settings.floor, self.gallery)
        self.answering = Answering(server, self.library, self.searcher, settings.chat)
        read = reader(server, self.parser)
        self._intake = Intake(self.library, read, self.store, embedder, self.gallery)
        self.reader = self.ingest()

    @asynccontextmanager
    async def open(self, *, passages: bool = True) -> AsyncIterator[None]:
        """Open inside of the block; without ``passages`` the store only once it is needed, for it
        takes a while. Raises StartError."""
        async with AsyncExitStack() as stack:
            await self.library.open()
            stack.push_async_callback(self.library.close)
            stack.push_async_callback(self._close_stores)
            stack.push_async_callback(self.parser.close)
            if passages:
                await self._open_stores()
            yield

    def ingest(self, batch: str | None = None) -> Ingest:
        """What reads the files of a batch, or whatever waits."""
        return Ingest(
            self.library,
            self._intake,
            parallel=self._settings.parsing.workers,
            batch=batch,
            stopping=lambda: self.server.stopping,
        )

    async def _open_stores(self) -> None:
        if not self._is_store_open:
            for store in self._stores:
                await store.open()
            self._is_store_open = True
            await self._tell_what_is_missing()

    async def _tell_what_is_missing(self) -> None:
        """Passages are all gone where ``uri`` means another place than before."""
        known = await self.library.catalog.read(members.completed)
        log.info("passages of %s are kept in %s", counted(known, "document"), self.store.uri)
        if known and not any([await store.count() for store in self._stores]):
            log.warning(
                "%s holds no passage of what was added, %s. If [plugin.knowledge] "
                "uri was changed, or is relative to another folder than before (that of the file "
                "that sets it counts), set it back or move the passages there; what is lost can "
                "only be added again",
                self.store.uri,
                counted(known, "document"),
            )

    async def _close_stores(self) -> None:
        if self._is_store_open:
            self._is_store_open = False
            for store in self._stores:
                await store.close()
            if self.gallery is not None:
                self.gallery.close()

    async def _drop(self, documents: Sequence[int]) -> None:
        await self._open_stores()
        for store in self._stores:
            await store.delete(documents)

    @property
    def _stores(self) -> list[Store]:
        return [self.store] if self.gallery is None else [self.store, self.gallery.store]


def _uri(settings: KnowledgeSettings, folder: Path) -> str:
    return settings.uri or str(folder / "store")


def _gallery(settings: KnowledgeSettings, folder: Path) -> Gallery | None:
    """What looks at pictures, in a store of its own below that of the passages."""
    if settings.pictures.checkpoint is None:
        return None
    uri = f"{_uri(settings, folder).rstrip('/')}/pictures"
    return Gallery(settings.pictures, Store(uri, settings.storage_options))
