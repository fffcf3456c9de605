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


def add_routes(routes: Blueprint, base: KnowledgeBase) -> None:
    """Adds the routes."""
    library = base.library
    path = "/v1/vector_stores/<vector_store_id>/files"

    @routes.post(path)
    @describe(request=CreateMember, response=VectorStoreFile)
    async def create_vector_store_file(vector_store_id: str) -> Response:
        """Puts a file into a collection and begins to read it."""
        asked = validate(CreateMember, await read_json())
        collection = await library.open_collection(vector_store_id)
        cut = chunking(asked.chunking_strategy, base.chunking)
        wanted = [(asked.file_id, asked.attributes, cut)]
        (member,) = await library.add_members(collection, wanted)
        base.reader.wake()
        return json_response(member_body(member, collection))

    @routes.get(path)
    @describe(response=VectorStoreFileList)
    async def list_vector_store_files(vector_store_id: str) -> Response:
        """The files of a collection, newest first; of one status with ``filter``."""
        asked = query(MembersQuery)
        collection = await library.collection(vector_store_id)
        page = await page_of(
            library.catalog,
            members.page,
            asked.cursor,
            collection=collection.number,
            status=asked.filter,
        )
        data = [member_body(member, collection) for member in page.items]
        return json_response(page_body(page, data))

    @routes.get(f"{path}/<file_id>")
    @describe(response=VectorStoreFile)
    async def retrieve_vector_store_file(vector_store_id: str, file_id: str) -> Response:
        """One file of a collection, with its status."""
        collection = await library.collection(vector_store_id)
        member = await _member(base, collection, file_id)
        response = json_response(member_body(member, collection))
        response.headers["openai-poll-after-ms"] = str(POLL_AFTER_MS)
        return response

    @routes.post(f"{path}/<file_id>")
    @describe(request=UpdateMember, response=VectorStoreFile)
    async def update_vector_store_file(vector_store_id: str, file_id: str) -> Response:
        """Replaces the attributes of a file in a collection."""
        asked = validate(UpdateMember, await read_json())
        collection = await library.open_collection(vector_store_id)
        member = await _member(base, collection, file_id)
        member = await library.catalog.write(
            members.set_attributes, member.seq, asked.attributes or {}
        )
        return json_response(member_body(member, collection))

    @routes.delete(f"{path}/<file_id>")
    @describe(response=VectorStoreFileDeleted)
    async def delete_vector_store_file(vector_store_id: str, file_id: str) -> Response:
        """Takes a file out of a collection; the file itself stays."""
        collection = await library.collection(vector_store_id)
        await _member(base, collection, file_id)
        await library.remove_member(collection, file_id)
        return json_response(deleted_body(file_id, "vector_store.file.deleted"))

    @routes.get(f"{path}/<file_id>/content")
    @describe(response=FileContent)
    async def vector_store_file_content(vector_store_id: str, file_id: str) -> Response:
        """What was read from a file, in order, with the place of each part."""
        collection = await library.open_collection(vector_store_id)
        member = await _member(base, collection, file_id)
        chunks = merged(await base.store.chunks(member.seq))
        data = [{"type": "text", "text": each.text, "location": each.location} for each in chunks]
        return json_response(
            {
                "object": "vector_store.file_content.page",
                "data": data,
                "has_more": False,
                "next_page": None,
            }
        )


async def _member(base: KnowledgeBase, collection: Collection, file_id: str) -> Member:
    member = await base.library.catalog.read(members.find, collection.number, file_id)
    if member is None:
        raise no_member(file_id, collection.id)
    return member
