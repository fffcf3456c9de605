"""Documents in a server: for other plugins by the hook, and from other plugins for collections."""

from __future__ import annotations

from typing import Any

import pytest

from hookline import Document, InvalidRequest, Section, hookimpl


class Rtf:
    """A plugin that reads a kind of file which knowledge does not."""

    @hookimpl
    async def parse_document(self, data: bytes, name: str) -> Document | None:
        if not data.startswith(b"{\\rtf"):
            return None
        if b"broken" in data:
            raise InvalidRequest("Its braces do not match.")
        text = data.decode()[6:-1]
        return Document(name, (Section(text, "all of it"),), "application/rtf")


async def test_other_plugins_get_documents(reader: Any, files: Any) -> None:
    async with reader() as at:
        kernel = at.server.kernel
        document = await kernel.parse_document(
            files.pdf("One", "Two"), "https://example.com/a.pdf?b"
        )
        assert document is not None
        assert [(s.location, s.text) for s in document.sections] == [
            ("page 1", "One"),
            ("page 2", "Two"),
        ]
        assert document.title == "a"
        with pytest.raises(InvalidRequest, match=r"'a\.pdf' cannot be read: The PDF is damaged"):
            await kernel.parse_document(b"%PDF-1.7 oops", "a.pdf")
        assert await kernel.parse_document(b"{\\rtf x}", "a.rtf") is None


async def test_collections_take_what_another_plugin_reads(reader: Any) -> None:
    async with reader(also={"rtf": Rtf()}) as at:
        store = await at.openai.vector_stores.create(name="Letters")

        async def add(data: bytes) -> Any:
            return await at.openai.vector_stores.files.upload_and_poll(
                vector_store_id=store.id, file=("a.rtf", data), poll_interval_ms=20
            )

        assert (await add(b"{\\rtf Dear cellar}")).status == "completed"
        failed = await add(b"{\\rtf broken}")
        assert failed.status == "failed"
        assert failed.last_error.message == "Its braces do not match."
        found = await at.openai.vector_stores.search(store.id, query="dear cellar")
        assert found.data[0].content[0].text == "Dear cellar"


async def test_harmful_files_fail_beside_good_ones(reader: Any, files: Any) -> None:
    sent = {
        "good.pdf": (files.pdf("The cellar is dry"), None),
        "empty.txt": (b" ", "The file is empty"),
        "text.pdf": (b"text", "claims to be a PDF, but it is a text"),
        "bomb.docx": (files.zip({"word/document.xml": b"a" * 2_000_000}), "only a bomb"),
        "cut.xlsx": (files.xlsx(S=[["a"]])[:300], "damaged"),
        "old.doc": (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "old Office"),
    }
    async with reader() as at:
        store = await at.openai.vector_stores.create(name="Mixed")
        for name, (data, reason) in sent.items():
            file = await at.openai.vector_stores.files.upload_and_poll(
                vector_store_id=store.id, file=(name, data), poll_interval_ms=20
            )
            assert file.status == ("failed" if reason else "completed")
            assert reason is None or reason in file.last_error.message
        counts = (await at.openai.vector_stores.retrieve(store.id)).file_counts
        assert (counts.completed, counts.failed) == (1, 5)
        found = await at.openai.vector_stores.search(store.id, query="dry cellar")
        assert [result.filename for result in found.data] == ["good.pdf"]


async def test_what_is_missing_of_a_file_that_was_read_is_told(reader: Any, files: Any) -> None:
    mail = files.eml("The cellar is dry.")
    mail.add_attachment(b"\0\1\2\3", maintype="application", subtype="x", filename="a.bin")
    async with reader() as at:
        store = await at.openai.vector_stores.create(name="Mails")
        file = await at.openai.vector_stores.files.upload_and_poll(
            vector_store_id=store.id, file=("a.eml", mail.as_bytes()), poll_interval_ms=20
        )
    assert file.status == "completed"
    assert file.last_error is None
    assert file.model_extra["notes"] == (
        "a.bin: The file is neither text nor of a kind that is read."
    )
