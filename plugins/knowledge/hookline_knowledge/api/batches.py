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

PATH = "/v1/vector_stores/<path:vector_store_id>/file_batches"


class BatchRoutes:
    """Files that are put into a collection at once."""

    def __init__(self, base: KnowledgeBase) -> None:
        self._base = base
        self._library = base.library

    @describe(request=CreateBatch, response=FileBatch)
    async def create_file_batch(self, vector_store_id: str) -> Response:
        """Puts files into a collection and begins to read them."""
        asked = validate(CreateBatch, await read_json())
        collection = await self._library.open_collection(vector_store_id)
        id = f"vsfb_{secrets.token_hex(12)}"
        wanted = [
            (each.file_id, each.attributes, chunking(each.chunking_strategy, self._base.chunking))
            for each in asked.members
        ]
        await self._library.add_members(collection, wanted, batch=id)
        batch = await self._library.catalog.write(
            batches.add, id, collection.number, self._library.now
        )
        self._base.reader.wake()
        return await self._answer(batch, collection)

    @describe(response=FileBatch)
    async def retrieve_file_batch(self, vector_store_id: str, batch_id: str) -> Response:
        """One batch, with how far it is."""
        collection = await self._library.collection(vector_store_id)
        return await self._answer(await self._batch(collection, batch_id), collection)

    @describe(response=FileBatch)
    async def cancel_file_batch(self, vector_store_id: str, batch_id: str) -> Response:
        """Ends what of a batch is not done yet; what is done stays."""
        collection = await self._library.collection(vector_store_id)
        batch = await self._batch(collection, batch_id)
        await self._library.catalog.write(batches.cancel, batch.id)
        self._base.reader.wake()
        return await self._answer(await self._batch(collection, batch_id), collection)

    @describe(response=VectorStoreFileList)
    async def list_file_batch_files(self, vector_store_id: str, batch_id: str) -> Response:
        """The files of a batch, newest first; of one status with ``filter``."""
        asked = query(MembersQuery)
        collection = await self._library.collection(vector_store_id)
        batch = await self._batch(collection, batch_id)
        page = await page_of(
            self._library.catalog,
            members.page,
            asked.cursor,
            collection=collection.number,
            status=asked.filter,
            batch=batch.id,
        )
        data = [member_body(member, collection) for member in page.items]
        return json_response(page_body(page, data))

    async def _batch(self, collection: Collection, id: str) -> Batch:
        batch = await self._library.catalog.read(batches.find, collection.number, id)
        if batch is None:
            raise no_batch(id, collection.id)
        return batch

    async def _answer(self, batch: Batch, collection: Collection) -> Response:
        counts = await self._library.catalog.read(collections.batch_counts, batch.id)
        response = json_response(batch_body(batch, collection, counts))
        response.headers["openai-poll-after-ms"] = str(POLL_AFTER_MS)
        return response


def add_routes(routes: Blueprint, base: KnowledgeBase) -> None:
    """Adds the routes."""
    here = BatchRoutes(base)
    routes.post(PATH)(here.create_file_batch)
    routes.get(f"{PATH}/<batch_id>")(here.retrieve_file_batch)
    routes.post(f"{PATH}/<batch_id>/cancel")(here.cancel_file_batch)
    routes.get(f"{PATH}/<batch_id>/files")(here.list_file_batch_files)
