"""``/v1/vector_stores``: collections of documents."""

from __future__ import annotations

from typing import Any

from quart import Blueprint, Response

from hookline.routes import describe, json_response, read_json, validate
from hookline_knowledge.api.answers import VectorStore, VectorStoreDeleted, VectorStoreList
from hookline_knowledge.api.bodies import deleted_body, page_body, store_body
from hookline_knowledge.api.pages import page_of
from hookline_knowledge.api.requests import (
    CreateVectorStore,
    ListQuery,
    UpdateVectorStore,
    chunking,
    query,
)
from hookline_knowledge.base import KnowledgeBase
from hookline_knowledge.catalog import Collection, collections
from hookline_knowledge.names import collection_name

PATH = "/v1/vector_stores/<path:vector_store_id>"


class CollectionRoutes:
    """Collections."""

    def __init__(self, base: KnowledgeBase) -> None:
        self._base = base
        self._library = base.library

    @describe(request=CreateVectorStore, response=VectorStore)
    async def create_vector_store(self) -> Response:
        """Makes a collection, and begins to read its first files."""
        asked = validate(CreateVectorStore, await read_json())
        for id in asked.file_ids:
            await self._library.file(id, "file_ids")
        collection = await self._library.create_collection(
            asked.name or "",
            description=asked.description,
            metadata=asked.metadata,
            expires_days=asked.expires_after.days if asked.expires_after else None,
        )
        cut = chunking(asked.chunking_strategy, self._base.chunking)
        await self._library.add_members(collection, [(id, {}, cut) for id in asked.file_ids])
        self._base.reader.wake()
        return json_response(await self._body(collection))

    @describe(response=VectorStoreList)
    async def list_vector_stores(self) -> Response:
        """All collections, newest first."""
        asked = query(ListQuery)
        await self._library.expire()
        page = await page_of(self._library.catalog, collections.page, asked.cursor)
        numbers = [collection.number for collection in page.items]
        counts = await self._library.catalog.read(collections.counts, numbers)
        data = [store_body(each, counts[each.number]) for each in page.items]
        return json_response(page_body(page, data))

    @describe(response=VectorStore)
    async def retrieve_vector_store(self, vector_store_id: str) -> Response:
        """One collection, by ``vs_…``, ``c:3`` or its name."""
        collection = await self._library.collection(vector_store_id)
        return json_response(await self._body(collection))

    @describe(request=UpdateVectorStore, response=VectorStore)
    async def update_vector_store(self, vector_store_id: str) -> Response:
        """Changes name, description, metadata or expiry."""
        asked = validate(UpdateVectorStore, await read_json())
        collection = await self._library.open_collection(vector_store_id)
        if changes := _changes(asked):
            collection = await self._library.catalog.write(
                collections.update, collection.number, **changes
            )
        return json_response(await self._body(collection))

    @describe(response=VectorStoreDeleted)
    async def delete_vector_store(self, vector_store_id: str) -> Response:
        """Removes a collection; its files stay."""
        collection = await self._library.collection(vector_store_id)
        await self._library.remove_collection(collection)
        return json_response(deleted_body(collection.id, "vector_store.deleted"))

    async def _body(self, collection: Collection) -> dict[str, Any]:
        counts = await self._library.catalog.read(collections.counts, [collection.number])
        return store_body(collection, counts[collection.number])


def add_routes(routes: Blueprint, base: KnowledgeBase) -> None:
    """Adds the routes."""
    here = CollectionRoutes(base)
    routes.post("/v1/vector_stores")(here.create_vector_store)
    routes.get("/v1/vector_stores")(here.list_vector_stores)
    routes.get(PATH)(here.retrieve_vector_store)
    routes.post(PATH)(here.update_vector_store)
    routes.delete(PATH)(here.delete_vector_store)


def _changes(asked: UpdateVectorStore) -> dict[str, Any]:
    """The columns to change: those that were sent. A name of null is left as it is, as a collection
    keeps one."""
    changes = asked.model_dump(exclude_unset=True, exclude={"expires_after"})
    if changes.get("name", "") is None:
        del changes["name"]
    if "name" in changes:
        changes["name"] = collection_name(changes["name"])
    if changes.get("metadata", "") is None:
        changes["metadata"] = {}
    if "expires_after" in asked.model_fields_set:
        changes["expires_days"] = asked.expires_after.days if asked.expires_after else None
    return changes
