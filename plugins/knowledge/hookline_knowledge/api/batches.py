"""``/v1/vector_stores/…/file_batches``: many files at once."""

from __future__ import annotations

import secrets

from quart import Blueprint, Response

from hookline.routes import describe, json_response, read_json, validate
from hookline_knowledge.api.answers import FileBatch, VectorStoreFileList
from hookline_knowledge.api.bodies import batch_body, member_body, page_body
from hookline_knowledge.api.members import POLL_AFTER_MS
from hookline_knowledge.api.pages import page_of
from hookline_knowledge.api.requests import CreateBatch, MembersQuery, chunking, query
from hookline_knowledge.base import KnowledgeBase
from hookline_knowledge.catalog import Batch, Collection, batches, collections, members
from hookline_knowledge.problems import no_batch


def add_routes(routes: Blueprint, base: KnowledgeBase) -> None:
    """Adds the routes."""
    library = base.library
    path = "/v1/vector_stores/<vector_store_id>/file_batches"

    @routes.post(path)
    @describe(request=CreateBatch, response=FileBatch)
    async def create_file_batch(vector_store_id: str) -> Response:
        """Puts files into a collection and begins to read them."""
        asked = validate(CreateBatch, await read_json())
        collection = await library.open_collection(vector_store_id)
        id = f"vsfb_{secrets.token_hex(12)}"
        wanted = [
            (each.file_id, each.attributes, chunking(each.chunking_strategy, base.chunking))
            for each in asked.members
        ]
        await library.add_members(collection, wanted, batch=id)
        batch = await library.catalog.write(batches.add, id, collection.number, library.now)
        base.reader.wake()
        return await _answer(base, batch, collection)

    @routes.get(f"{path}/<batch_id>")
    @describe(response=FileBatch)
    async def retrieve_file_batch(vector_store_id: str, batch_id: str) -> Response:
        """One batch, with how far it is."""
        collection = await library.collection(vector_store_id)
        return await _answer(base, await _batch(base, collection, batch_id), collection)

    @routes.post(f"{path}/<batch_id>/cancel")
    @describe(response=FileBatch)
    async def cancel_file_batch(vector_store_id: str, batch_id: str) -> Response:
        """Ends what of a batch is not done yet; what is done stays."""
        collection = await library.collection(vector_store_id)
        batch = await _batch(base, collection, batch_id)
        await library.catalog.write(batches.cancel, batch.id)
        base.reader.wake()
        return await _answer(base, await _batch(base, collection, batch_id), collection)

    @routes.get(f"{path}/<batch_id>/files")
    @describe(response=VectorStoreFileList)
    async def list_file_batch_files(vector_store_id: str, batch_id: str) -> Response:
        """The files of a batch, newest first; of one status with ``filter``."""
        asked = query(MembersQuery)
        collection = await library.collection(vector_store_id)
        batch = await _batch(base, collection, batch_id)
        page = await page_of(
            library.catalog,
            members.page,
            asked.cursor,
            collection=collection.number,
            status=asked.filter,
            batch=batch.id,
        )
        data = [member_body(member, collection) for member in page.items]
        return json_response(page_body(page, data))


async def _batch(base: KnowledgeBase, collection: Collection, id: str) -> Batch:
    batch = await base.library.catalog.read(batches.find, collection.number, id)
    if batch is None:
        raise no_batch(id, collection.id)
    return batch


async def _answer(base: KnowledgeBase, batch: Batch, collection: Collection) -> Response:
    counts = await base.library.catalog.read(collections.batch_counts, batch.id)
    response = json_response(batch_body(batch, collection, counts))
    response.headers["openai-poll-after-ms"] = str(POLL_AFTER_MS)
    return response
