"""``/v1/vector_stores/…/files``: which files are in a collection, and how far they are."""

from __future__ import annotations

from quart import Blueprint, Response

from hookline.routes import describe, json_response, read_json, validate
from hookline_knowledge.api.answers import (
    FileContent,
    VectorStoreFile,
    VectorStoreFileDeleted,
    VectorStoreFileList,
)
from hookline_knowledge.api.bodies import deleted_body, member_body, page_body
from hookline_knowledge.api.pages import page_of
from hookline_knowledge.api.requests import (
    CreateMember,
    MembersQuery,
    UpdateMember,
    chunking,
    query,
)
from hookline_knowledge.base import KnowledgeBase
from hookline_knowledge.catalog import Collection, Member, members
from hookline_knowledge.chunks import merged
from hookline_knowledge.problems import no_member

POLL_AFTER_MS = 250
"""How soon an SDK that polls is to ask again."""
PATH = "/v1/vector_stores/<path:vector_store_id>/files"


class MemberRoutes:
    """Files in collections."""

    def __init__(self, base: KnowledgeBase) -> None:
        self._base = base
        self._library = base.library

    @describe(request=CreateMember, response=VectorStoreFile)
    async def create_vector_store_file(self, vector_store_id: str) -> Response:
        """Puts a file into a collection and begins to read it."""
        asked = validate(CreateMember, await read_json())
        collection = await self._library.open_collection(vector_store_id)
        cut = chunking(asked.chunking_strategy, self._base.chunking)
        wanted = [(asked.file_id, asked.attributes, cut)]
        (member,) = await self._library.add_members(collection, wanted)
        self._base.reader.wake()
        return json_response(member_body(member, collection))

    @describe(response=VectorStoreFileList)
    async def list_vector_store_files(self, vector_store_id: str) -> Response:
        """The files of a collection, newest first; of one status with ``filter``."""
        asked = query(MembersQuery)
        collection = await self._library.collection(vector_store_id)
        page = await page_of(
            self._library.catalog,
            members.page,
            asked.cursor,
            collection=collection.number,
            status=asked.filter,
        )
        data = [member_body(member, collection) for member in page.items]
        return json_response(page_body(page, data))

    @describe(response=VectorStoreFile)
    async def retrieve_vector_store_file(self, vector_store_id: str, file_id: str) -> Response:
        """One file of a collection, with its status."""
        collection = await self._library.collection(vector_store_id)
        member = await self._member(collection, file_id)
        response = json_response(member_body(member, collection))
        response.headers["openai-poll-after-ms"] = str(POLL_AFTER_MS)
        return response

    @describe(request=UpdateMember, response=VectorStoreFile)
    async def update_vector_store_file(self, vector_store_id: str, file_id: str) -> Response:
        """Replaces the attributes of a file in a collection."""
        asked = validate(UpdateMember, await read_json())
        collection = await self._library.open_collection(vector_store_id)
        member = await self._member(collection, file_id)
        member = await self._library.catalog.write(
            members.set_attributes, member.seq, asked.attributes or {}
        )
        return json_response(member_body(member, collection))

    @describe(response=VectorStoreFileDeleted)
    async def delete_vector_store_file(self, vector_store_id: str, file_id: str) -> Response:
        """Takes a file out of a collection; the file itself stays."""
        collection = await self._library.collection(vector_store_id)
        await self._member(collection, file_id)
        await self._library.remove_member(collection, file_id)
        return json_response(deleted_body(file_id, "vector_store.file.deleted"))

    @describe(response=FileContent)
    async def vector_store_file_content(self, vector_store_id: str, file_id: str) -> Response:
        """What was read from a file, in order, with the place of each part."""
        collection = await self._library.open_collection(vector_store_id)
        member = await self._member(collection, file_id)
        chunks = merged(await self._base.store.chunks(member.seq))
        data = [{"type": "text", "text": each.text, "location": each.location} for each in chunks]
        return json_response(
            {
                "object": "vector_store.file_content.page",
                "data": data,
                "has_more": False,
                "next_page": None,
            }
        )

    async def _member(self, collection: Collection, file_id: str) -> Member:
        member = await self._library.catalog.read(members.find, collection.number, file_id)
        if member is None:
            raise no_member(file_id, collection.id)
        return member


def add_routes(routes: Blueprint, base: KnowledgeBase) -> None:
    """Adds the routes."""
    here = MemberRoutes(base)
    routes.post(PATH)(here.create_vector_store_file)
    routes.get(PATH)(here.list_vector_store_files)
    routes.get(f"{PATH}/<file_id>")(here.retrieve_vector_store_file)
    routes.post(f"{PATH}/<file_id>")(here.update_vector_store_file)
    routes.delete(f"{PATH}/<file_id>")(here.delete_vector_store_file)
    routes.get(f"{PATH}/<file_id>/content")(here.vector_store_file_content)
