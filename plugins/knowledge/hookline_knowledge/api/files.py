"""``/v1/files``: what was sent, whether it is in a collection or not."""

from __future__ import annotations

import re
from urllib.parse import quote

from quart import Blueprint, Response, request

from hookline import InvalidRequest
from hookline.routes import accepts, describe, json_response, validate
from hookline_knowledge.api.answers import FileDeleted, FileList, FileObject
from hookline_knowledge.api.bodies import deleted_body, file_body, page_body
from hookline_knowledge.api.pages import page_of
from hookline_knowledge.api.requests import FileForm, FilesQuery, query
from hookline_knowledge.api.uploads import MULTIPART, Form, nested, read_form
from hookline_knowledge.base import KnowledgeBase
from hookline_knowledge.blobs import read_file
from hookline_knowledge.catalog import StoredFile, files

BATCH_EXPIRES_SECONDS = 30 * 86400
"""OpenAI's default for files of purpose ``batch``."""


class FileRoutes:
    """Files, whether they are in a collection or not."""

    def __init__(self, base: KnowledgeBase) -> None:
        self._base = base
        self._library = base.library

    @accepts(MULTIPART)
    @describe(request=FileForm, request_type=MULTIPART, response=FileObject)
    async def create_file(self) -> Response:
        """Keeps a file, sent as a form with the fields ``file`` and ``purpose``."""
        server = self._base.server.settings.server
        form = await read_form(
            request,
            self._library.blobs,
            limit=min(self._base.file_bytes, int(server.max_body_mb * 1024 * 1024)),
            idle_seconds=server.body_timeout,
        )
        return json_response(file_body(await _kept(self._base, form)))

    @describe(response=FileList)
    async def list_files(self) -> Response:
        """All files, newest first."""
        asked = query(FilesQuery)
        await self._library.expire()
        page = await page_of(
            self._library.catalog, files.page, asked.cursor, asked.purpose, self._library.now
        )
        return json_response(page_body(page, [file_body(file) for file in page.items]))

    @describe(response=FileObject)
    async def retrieve_file(self, file_id: str) -> Response:
        """One file."""
        return json_response(file_body(await self._library.file(file_id)))

    @describe(response=FileDeleted)
    async def delete_file(self, file_id: str) -> Response:
        """Removes a file, from all collections too."""
        await self._library.file(file_id)
        await self._library.remove_file(file_id)
        return json_response(deleted_body(file_id, "file"))

    @describe(content_type="application/octet-stream")
    async def file_content(self, file_id: str) -> Response:
        """The bytes of a file."""
        return _download(self._base, await self._library.file(file_id))


def add_routes(routes: Blueprint, base: KnowledgeBase) -> None:
    """Adds the routes."""
    here = FileRoutes(base)
    routes.post("/v1/files")(here.create_file)
    routes.get("/v1/files")(here.list_files)
    routes.get("/v1/files/<file_id>")(here.retrieve_file)
    routes.delete("/v1/files/<file_id>")(here.delete_file)
    routes.get("/v1/files/<file_id>/content")(here.file_content)


async def _kept(base: KnowledgeBase, form: Form) -> StoredFile:
    received = form.received
    if received is None:
        raise InvalidRequest("The form holds no file in the field 'file'.", param="file")
    try:
        asked = validate(FileForm, nested(form.fields))
        seconds = asked.expires_after.seconds if asked.expires_after else None
        if seconds is None and asked.purpose == "batch":
            seconds = BATCH_EXPIRES_SECONDS
        return await base.library.add_file(
            received,
            form.name,
            purpose=asked.purpose,
            media_type=form.media_type,
            expires=None if seconds is None else base.library.now + seconds,
        )
    except BaseException:
        base.library.blobs.discard(received)
        raise


def _download(base: KnowledgeBase, file: StoredFile) -> Response:
    """Never as a page: a browser that shows a stored HTML file would run it as ours."""
    response = Response(
        read_file(base.library.blobs.path(file.hash)), content_type="application/octet-stream"
    )
    plain = re.sub(r'[^ -~]|["\\%]', "_", file.name)
    response.headers["Content-Length"] = str(file.bytes)
    response.headers["X-Content-Type-Options"] = "nosniff"
    response.headers["Content-Disposition"] = (
        f"attachment; filename=\"{plain}\"; filename*=UTF-8''{quote(file.name, safe='')}"
    )
    return response
