"""``/v1/files``, as OpenAI's SDK drives it and as others break it."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import openai
import pytest

from hookline.testing import TestClock

BOUNDARY = "xyz"
FORM = {"content-type": f"multipart/form-data; boundary={BOUNDARY}"}


def form(*parts: tuple[str, bytes]) -> bytes:
    """A form of parts, each with what follows ``name=`` and its content."""
    body = b"".join(
        f"--{BOUNDARY}\r\nContent-Disposition: form-data; name={head}\r\n\r\n".encode()
        + content
        + b"\r\n"
        for head, content in parts
    )
    return body + f"--{BOUNDARY}--\r\n".encode()


PURPOSE = ('"purpose"', b"user_data")


async def test_a_file_from_its_upload_to_its_end(reader: Any) -> None:
    data = bytes(range(256)) * 5000  # more than is read at once, and no text
    async with reader() as at:
        files = at.openai.files
        made = await files.create(file=("Größe 10%.bin", io.BytesIO(data)), purpose="user_data")
        assert made.filename == "Größe 10%.bin" and made.bytes == len(data)
        assert made.object == "file" and made.status == "processed" and made.purpose == "user_data"
        assert made.expires_at is None
        assert await files.retrieve(made.id) == made
        assert await files.wait_for_processing(made.id) == made
        content = await files.content(made.id)
        assert content.content == data
        assert content.response.headers["content-type"] == "application/octet-stream"
        assert "attachment" in content.response.headers["content-disposition"]
        gone = await files.delete(made.id)
        assert gone.deleted and gone.id == made.id and gone.object == "file"
        for ask in (files.retrieve, files.content, files.delete):
            with pytest.raises(openai.NotFoundError) as refused:
                await ask(made.id)
            assert made.id in refused.value.message and refused.value.param == "file_id"


async def test_bytes_are_kept_once_and_leave_with_their_last_file(
    reader: Any, tmp_path: Path
) -> None:
    def kept() -> list[Path]:
        folder = tmp_path / "data" / "knowledge"
        return [path for path in folder.rglob("*") if path.is_file() and len(path.name) == 64]

    async with reader() as at:
        one, two = await at.file("the same"), await at.file("the same", "other.txt")
        assert len(kept()) == 1
        await at.openai.files.delete(one)
        assert (await at.openai.files.content(two)).content == b"the same"
        await at.openai.files.delete(two)
        assert kept() == []


async def test_lists_in_pages(reader: Any) -> None:
    async with reader() as at:
        files = at.openai.files
        ids = [await at.file(str(number)) for number in range(5)]
        other = await files.create(file=("b.jsonl", b"{}"), purpose="batch")
        assert other.expires_at == other.created_at + 30 * 86400
        assert [file.id async for file in await files.list(limit=2)] == [other.id, *ids[::-1]]
        ordered = await files.list(order="asc", after=ids[0], limit=2)
        assert [file.id for file in ordered.data] == ids[1:3] and ordered.has_more
        assert [file.id for file in (await files.list(purpose="batch")).data] == [other.id]
        with pytest.raises(openai.BadRequestError, match="nobody") as refused:
            await files.list(after="nobody")
        assert refused.value.param == "after"
        for wrong in ({"limit": 0}, {"order": "up"}, {"limit": "x"}):
            response = await at.server.client.get("/v1/files", params=wrong)
            assert response.status_code == 400
            assert response.json()["error"]["param"] == next(iter(wrong))


async def test_a_file_expires(reader: Any) -> None:
    clock = TestClock()
    async with reader(clock=clock) as at:
        made = await at.openai.files.create(
            file=("a.txt", b"short-lived words"),
            purpose="user_data",
            expires_after={"anchor": "created_at", "seconds": 3600},
        )
        assert made.expires_at == made.created_at + 3600
        store = await at.openai.vector_stores.create(file_ids=[made.id])
        await at.until_idle()
        assert await at.rows() == 1
        clock.advance(seconds=3601)
        assert (await at.openai.files.list()).data == []
        with pytest.raises(openai.NotFoundError):
            await at.openai.files.retrieve(made.id)
        assert await at.rows() == 0
        assert (await at.openai.vector_stores.files.list(store.id)).data == []


@pytest.mark.parametrize(
    ("parts", "param", "word"),
    [
        ([PURPOSE], "file", "file"),
        ([('"file"; filename="a.txt"', b"x")], "purpose", "required"),
        ([('"file"; filename="a.txt"', b"x"), ('"purpose"', b"fun")], "purpose", "assistants"),
        ([('"data"; filename="a.txt"', b"x"), PURPOSE], "file", "data"),
        ([('"file"; filename="a.txt"', b"x")] * 2 + [PURPOSE], "file", "one file"),
        (
            [
                ('"file"; filename="a.txt"', b"x"),
                PURPOSE,
                ('"expires_after[anchor]"', b"created_at"),
                ('"expires_after[seconds]"', b"5"),
            ],
            "expires_after.seconds",
            "3600",
        ),
    ],
)
async def test_forms_that_are_refused(
    reader: Any, tmp_path: Path, parts: Any, param: str, word: str
) -> None:
    async with reader() as at:
        response = await at.server.client.post("/v1/files", content=form(*parts), headers=FORM)
        assert response.status_code == 400, response.text
        error = response.json()["error"]
        assert error["param"] == param and word in error["message"]
        left = tmp_path / "data" / "knowledge" / "workers"
        assert [path.name for path in left.rglob("*") if path.is_file()] == ["lock"]


async def test_bodies_that_are_no_forms(reader: Any) -> None:
    async with reader() as at:
        post = at.server.client.post
        whole = form(('"file"; filename="a.txt"', b"x" * 100), PURPOSE)
        for body in (whole[:80], whole[:-20], b"nonsense", b"--xyz"):
            response = await post("/v1/files", content=body, headers=FORM)
            assert response.status_code == 400, body
        assert (await post("/v1/files", json={"purpose": "user_data"})).status_code == 415
        no_boundary = {"content-type": "multipart/form-data"}
        response = await post("/v1/files", content=whole, headers=no_boundary)
        assert response.status_code == 400 and "boundary" in response.json()["error"]["message"]
        # A form is what a web page may send anywhere; its origin gives it away.
        foreign = {**FORM, "origin": "https://evil.example"}
        assert (await post("/v1/files", content=whole, headers=foreign)).status_code == 403
        assert (await post("/v1/vector_stores", content=whole, headers=FORM)).status_code == 415
        assert (await at.openai.files.list()).data == []


async def test_names_are_only_names(reader: Any) -> None:
    async with reader() as at:
        for sent, kept in (
            ("../../etc/passwd", "passwd"),
            ("C:\\docs\\report.pdf", "report.pdf"),
            ("inv\u202efdp.exe", "invfdp.exe"),
            ("x" * 400 + ".pdf", "x" * 251 + ".pdf"),
            ("..", "file"),
        ):
            file = await at.openai.files.create(file=(sent, b"1"), purpose="user_data")
            assert file.filename == kept


async def test_a_file_over_the_limit(reader: Any, tmp_path: Path) -> None:
    async with reader(parsing={"file_mb": 1}) as at:
        with pytest.raises(openai.APIStatusError, match="file_mb") as refused:
            await at.file(b"x" * (1024 * 1024 + 1))
        assert refused.value.status_code == 413
        await at.file(b"x" * 1024 * 1024)
        workers = tmp_path / "data" / "knowledge" / "workers"
        assert [path.name for path in workers.rglob("*") if path.is_file()] == ["lock"]


async def test_a_body_over_the_server_s_limit(reader: Any) -> None:
    async with reader(settings={"server": {"max_body_mb": 1}}) as at:
        for size in (1024 * 1024, 3 * 1024 * 1024):
            with pytest.raises(openai.APIStatusError, match="max_body_mb") as refused:
                await at.file(b"x" * size)
            assert refused.value.status_code == 413
            assert refused.value.code == "request_too_large"
