"""``/v1/vector_stores``: collections of documents."""

from __future__ import annotations

from typing import Any

from quart import Blueprint, Response

from hookline import InvalidRequest
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
from hookline_knowledge.library import check_name


def add_routes(routes: Blueprint, base: KnowledgeBase) -> None:
    """Adds the routes."""
    library = base.library

    @routes.post("/v1/vector_stores")
    @describe(request=CreateVectorStore, response=VectorStore)
    async def create_vector_store() -> Response:
        """Makes a collection, and begins to read its first files."""
        asked = validate(CreateVectorStore, await read_json())
        for id in asked.file_ids:
            await library.file(id, "file_ids")
        collection = await library.create_collection(
            asked.name or "",
            description=asked.description,
            metadata=asked.metadata,
            expires_days=asked.expires_after.days if asked.expires_after else None,
        )
        cut = chunking(asked.chunking_strategy, base.chunking)
        await library.add_members(collection, [(id, {}, cut) for id in asked.file_ids])
        base.reader.wake()
        return json_response(await _body(base, collection))

    @routes.get("/v1/vector_stores")
    @describe(response=VectorStoreList)
    async def list_vector_stores() -> Response:
        """All collections, newest first."""
        asked = query(ListQuery)
        await library.expire()
        page = await page_of(library.catalog, collections.page, asked.cursor)
        numbers = [collection.number for collection in page.items]
        counts = await library.catalog.read(collections.counts, numbers)
        data = [store_body(each, counts[each.number]) for each in page.items]
        return json_response(page_body(page, data))

    @routes.get("/v1/vector_stores/<vector_store_id>")
    @describe(response=VectorStore)
    async def retrieve_vector_store(vector_store_id: str) -> Response:
        """One collection, by ``vs_…``, ``c:3`` or its name."""
        collection = await library.collection(vector_store_id)
        return json_response(await _body(base, collection))

    @routes.post("/v1/vector_stores/<vector_store_id>")
    @describe(request=UpdateVectorStore, response=VectorStore)
    async def update_vector_store(vector_store_id: str) -> Response:
        """Changes name, description, metadata or expiry."""
        asked = validate(UpdateVectorStore, await read_json())
        collection = await library.open_collection(vector_store_id)
        if changes := _changes(asked):
            collection = await library.catalog.write(
                collections.update, collection.number, **changes
            )
        return json_response(await _body(base, collection))

    @routes.delete("/v1/vector_stores/<vector_store_id>")
    @describe(response=VectorStoreDeleted)
    async def delete_vector_store(vector_store_id: str) -> Response:
        """Removes a collection; its files stay."""
        collection = await library.collection(vector_store_id)
        await library.remove_collection(collection)
        return json_response(deleted_body(collection.id, "vector_store.deleted"))


async def _body(base: KnowledgeBase, collection: Collection) -> dict[str, Any]:
    counts = await base.library.catalog.read(collections.counts, [collection.number])
    return store_body(collection, counts[collection.number])


def _changes(asked: UpdateVectorStore) -> dict[str, Any]:
    """The columns to change: those that were sent."""
    changes = asked.model_dump(exclude_unset=True, exclude={"expires_after"})
    if changes.get("name", "") is None:
        raise InvalidRequest("'name': a collection keeps a name.", param="name")
    if "name" in changes:
        check_name(changes["name"])
    if changes.get("metadata", "") is None:
        changes["metadata"] = {}
    if "expires_after" in asked.model_fields_set:
        changes["expires_days"] = asked.expires_after.days if asked.expires_after else None
    return changes
