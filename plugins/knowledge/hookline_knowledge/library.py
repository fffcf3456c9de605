"""Files and collections as one whole: catalog, bytes, and rows in the store."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime
from pathlib import Path
from sqlite3 import Connection
from typing import Any

from hookline import InvalidRequest
from hookline_knowledge.blobs import Blobs, Received
from hookline_knowledge.catalog import (
    Attributes,
    Chunking,
    Collection,
    Database,
    Member,
    StoredFile,
    collections,
    files,
    members,
)
from hookline_knowledge.names import collection_name, is_id
from hookline_knowledge.problems import CollectionNotFound, ambiguous, no_collection, no_file
from hookline_knowledge.worker import Worker

REAPED_AT_ONCE = 200


Drop = Callable[[Sequence[int]], Awaitable[None]]
"""Removes all rows of members from the store, by their ``seq``."""


class Library:
    """What is kept. ``unwanted`` is called when something may have become superfluous that is
    being read just now."""

    def __init__(self, folder: Path, drop: Drop, clock: Callable[[], datetime]) -> None:
        self.worker = Worker(folder / "workers")
        self.blobs = Blobs(folder / "files", self.worker.folder)
        self.catalog = Database(folder)
        self.unwanted: Callable[[], None] = lambda: None
        self._drop = drop
        self._clock = clock
        self._reaping = asyncio.Lock()

    async def open(self) -> None:
        """Opens the catalog. Raises StartError."""
        await self.catalog.open()
        await asyncio.to_thread(self.worker.begin)

    async def close(self) -> None:
        """Closes the catalog, once nothing is being read any more."""
        await self.catalog.close()
        await asyncio.to_thread(self.worker.end)

    @property
    def now(self) -> int:
        """Seconds since 1970."""
        return int(self._clock().timestamp())

    # Files

    async def add_file(
        self,
        received: Received,
        name: str,
        *,
        purpose: str,
        media_type: str | None = None,
        origin: str | None = None,
        expires: int | None = None,
    ) -> StoredFile:
        """Keeps what was received, as a file with an id."""

        def keep(db: Connection, /, **values: Any) -> StoredFile:
            self.blobs.keep(received)
            return files.add(db, **values)

        return await self.catalog.write(
            keep,
            id=f"file-{secrets.token_hex(12)}",
            name=name,
            purpose=purpose,
            bytes=received.bytes,
            hash=received.hash,
            media_type=media_type,
            origin=origin,
            created=self.now,
            expires=expires,
        )

    async def file(self, id: str, param: str | None = "file_id") -> StoredFile:
        """A file. Raises NotFound."""
        found = await self.catalog.read(files.find, id, self.now)
        if found is None:
            raise no_file(id, param)
        return found

    async def remove_file(self, id: str) -> None:
        """Removes a file, from all collections too."""

        def remove(db: Connection) -> None:
            hash = files.remove(db, id)
            if hash is not None:
                self.blobs.remove(hash)

        await self.catalog.write(remove)
        await self.reap()

    # Collections

    async def collection(self, name: str, param: str | None = "vector_store_id") -> Collection:
        """A collection by ``vs_…``, ``c:3`` or its name; an expired one too where its id is asked.

        Raises CollectionNotFound, and InvalidRequest where several have that name.
        """
        await self.expire()
        found = await self.catalog.read(collections.find, name)
        if not found:
            raise no_collection(name, param)
        if len(found) > 1:
            raise ambiguous(name, [each.short_id for each in found], param)
        return found[0]

    async def open_collection(self, name: str, param: str | None = "vector_store_id") -> Collection:
        """A collection that has not expired. Raises CollectionNotFound like `collection`."""
        found = await self.collection(name, param)
        if found.state == "expired":
            raise no_collection(f"{name} (it has expired)", param)
        return found

    async def find_or_create(self, name: str) -> Collection:
        """The open collection of that id or name, or a new one of that name."""
        try:
            return await self.open_collection(name, "collection")
        except CollectionNotFound:
            if is_id(name):
                raise
            if not name.strip():
                raise InvalidRequest(
                    "The name of the collection is empty.", param="collection"
                ) from None
            return await self.create_collection(name)

    async def create_collection(
        self,
        name: str,
        *,
        description: str | None = None,
        metadata: dict[str, str] | None = None,
        expires_days: int | None = None,
    ) -> Collection:
        """A new collection, empty. Raises InvalidRequest for a name that cannot be."""
        name = collection_name(name)
        now = self.now
        return await self.catalog.write(
            collections.add,
            id=f"vs_{secrets.token_hex(12)}",
            name=name,
            description=description,
            metadata=metadata or {},
            created=now,
            active=now,
            expires_days=expires_days,
        )

    async def remove_collection(self, collection: Collection) -> None:
        """Removes a collection and all rows of it; the files stay."""
        await self.catalog.write(collections.empty, collection.number, "deleting")
        await self.reap()

    # Files in collections

    async def add_members(
        self,
        collection: Collection,
        wanted: Sequence[tuple[str, Attributes, Chunking]],
        *,
        batch: str | None = None,
    ) -> list[Member]:
        """Puts files into a collection, to be read by a worker. Raises NotFound."""
        if collection.state == "expired":
            raise InvalidRequest(
                f"The collection '{collection.name}' has expired. Make a new one.",
                param="vector_store_id",
            )
        now = self.now

        def add(db: Connection) -> list[Member]:
            for id, _, _ in wanted:
                if files.find(db, id, now) is None:
                    raise no_file(id)
            collections.touch(db, [collection.number], now)
            return [
                members.add(
                    *(db, collection.number, id),
                    attributes=attributes,
                    chunking=chunking,
                    now=now,
                    batch=batch,
                )
                for id, attributes, chunking in wanted
            ]

        return await self.catalog.write(add)

    async def remove_member(self, collection: Collection, file: str) -> None:
        """Takes a file out of a collection; the file itself stays."""
        await self.catalog.write(members.remove, collection.number, file)
        await self.reap()

    # What leaves

    async def expire(self) -> None:
        """Ends files and collections whose time is over."""
        now = self.now
        for id in await self.catalog.read(files.expired, now):
            await self.remove_file(id)
        due = await self.catalog.read(collections.due, now)
        for number in due:
            await self.catalog.write(collections.empty, number, "expired")
        if due:
            await self.reap()

    async def reap(self) -> None:
        """Removes from the store what nobody sees any more, also what a crash left behind."""
        self.unwanted()
        async with self._reaping:
            while gone := await self.catalog.read(members.deleting, REAPED_AT_ONCE):
                await self._drop(gone)
                await self.catalog.write(members.forget, gone)
        await self.catalog.write(collections.forget_deleted)

    async def give_back(self, worker: str, only: int | None = None) -> None:
        """Lets others take what a worker had taken and not completed; rows that it added go."""
        taken = await self.catalog.read(members.taken, worker)
        if only is not None:
            taken = [seq for seq in taken if seq == only]
        if taken:
            await self._drop(taken)
            await self.catalog.write(members.release, taken)

    async def take_over(self) -> None:
        """Frees what workers had taken that ended without a chance to give it back."""
        for worker in await self.catalog.read(members.workers):
            if not await asyncio.to_thread(self.worker.is_alive, worker):
                await self.give_back(worker)
        await asyncio.to_thread(self.worker.clean_up)
