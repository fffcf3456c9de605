"""Everything of the plugin that works together, in a server or for a command."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

from hookline import Server
from hookline_knowledge.catalog import Chunking
from hookline_knowledge.chat.transform import Answering
from hookline_knowledge.embedding import embedder_of
from hookline_knowledge.ingest import Ingest
from hookline_knowledge.intake import Intake
from hookline_knowledge.library import Library
from hookline_knowledge.parsing import Parser
from hookline_knowledge.search import Searcher
from hookline_knowledge.settings import KnowledgeSettings
from hookline_knowledge.store import Store

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
        self.store = Store(settings.uri or str(folder / "store"), settings.storage_options)
        self.parser = Parser(settings.parsing)
        self.embedder = embedder
        self.library = Library(folder, self.store.delete, server.clock)
        self.searcher = Searcher(self.library, self.store, embedder, settings.floor)
        self.answering = Answering(server, self.library, self.searcher, settings.chat)
        self._intake = Intake(self.library, self.parser, self.store, embedder)
        self.reader = self.ingest()

    @asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        """Open inside of the block. Raises StartError."""
        async with AsyncExitStack() as stack:
            await self.library.open()
            stack.push_async_callback(self.library.close)
            await self.store.open()
            stack.push_async_callback(self.store.close)
            stack.push_async_callback(self.parser.close)
            yield

    def ingest(self, batch: str | None = None) -> Ingest:
        """What reads the files of a batch, or whatever waits."""
        parallel = self._settings.parsing.workers
        return Ingest(self.library, self._intake, parallel=parallel, batch=batch)
