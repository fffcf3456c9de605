"""Names of collections and documents: those that work everywhere, and those that are refused."""

from __future__ import annotations

import unicodedata
from typing import Any

import openai
import pytest

from hookline_knowledge.names import document_name


@pytest.mark.parametrize(
    ("sent", "kept"),
    [
        ("../../etc/passwd", "passwd"),
        ("C:\\docs\\lease.pdf", "lease.pdf"),
        ("a\x00b\n\u202etxt.exe", "abtxt.exe"),
        (unicodedata.normalize("NFD", "Fähre.txt"), "Fähre.txt"),
        ("notes.", "notes."),
        ("..", "file"),
        ("", "file"),
        ("x" * 300 + ".pdf", "x" * 251 + ".pdf"),
        ("x." + "y" * 300, "." + "y" * 254),
    ],
)
def test_names_of_documents(sent: str, kept: str) -> None:
    assert document_name(sent) == kept


async def test_names_that_work_in_every_place(reader: Any) -> None:
    async with reader(port=True) as at:
        stores = at.openai.vector_stores
        for name in (
            "legal/2024/Q1",
            "50 % off?",
            "a%2Fb",
            "#1: costs & more",
            "Fähre 漢字 🚢",
            "Notes...",
            "…/..x",
            "back\\slash",
            "n" * 256,
        ):
            made = await stores.create(name=f"  {unicodedata.normalize('NFD', name)} ")
            assert made.name == name
            assert (await stores.retrieve(name)).id == made.id
            assert (await stores.files.list(name)).data == []
            assert (await stores.update(name, name=f"{name[:200]} 2")).name == f"{name[:200]} 2"
            assert (await stores.delete(f"{name[:200]} 2")).deleted
        await at.collection("legal/2024", leave="Annual leave is thirty days.")
        assert len((await stores.search("legal/2024", query="annual leave")).data) == 1
        (file,) = (await stores.files.list("legal/2024")).data
        assert await stores.files.retrieve(file.id, vector_store_id="legal/2024") == file
        answer = await at.server.chat("How long is annual leave?", knowledge="legal/2024")
        assert answer.json()["sources"][0]["document_id"] == file.id


async def test_names_that_are_refused_at_once(reader: Any) -> None:
    async with reader() as at:
        stores = at.openai.vector_stores
        kept = await stores.create(name="kept")
        for name, told in (
            ("all", "all of them"),
            ("c:7", "an id"),
            ("vs_x", "an id"),
            (".", "between slashes"),
            ("a/../b", "between slashes"),
            ("/a", "between slashes"),
            ("a//b", "between slashes"),
            ("a/", "between slashes"),
            ("a/files", "in paths"),
            ("a/search/b", "in paths"),
            ("line\nbreak", "U.000A"),
            ("turned\u202earound", "U.202E"),
            ("n" * 257, "256"),
        ):
            with pytest.raises(openai.BadRequestError, match=told) as refused:
                await stores.create(name=name)
            assert refused.value.param == "name"
        with pytest.raises(openai.BadRequestError, match="between slashes"):
            await stores.update(kept.id, name="a/../b")
        response = await at.server.client.post(
            "/v1/vector_stores",
            content=b'{"name": "half a \\ud800 letter"}',
            headers={"Content-Type": "application/json"},
        )
        assert response.status_code == 400
        assert len((await stores.list()).data) == 1
        nameless = await stores.create(name=" ")
        assert nameless.name == ""
        assert (await stores.retrieve(nameless.id)).id == nameless.id
