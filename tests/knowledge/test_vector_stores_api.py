"""``/v1/vector_stores``, as OpenAI's SDK drives it."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import openai
import pytest

from hookline.testing import TestClock
from hookline_knowledge.api.answers import (
    FileBatch,
    SearchResults,
    VectorStore,
    VectorStoreFile,
    VectorStoreList,
)

LEAVE = "Annual leave is thirty days a year."
PETS = "Dogs may come to the office on Fridays."


async def test_a_collection_from_its_beginning_to_its_end(reader: Any) -> None:
    async with reader() as at:
        stores = at.openai.vector_stores
        made = await stores.create(
            name="Policies",
            description="What holds",
            metadata={"team": "people"},
            expires_after={"anchor": "last_active_at", "days": 7},
        )
        VectorStore.model_validate(made.model_dump())
        assert made.status == "completed" and made.file_counts.total == 0
        assert made.expires_at == made.last_active_at + 7 * 86400
        assert made.model_extra["collection"] == "c:1"
        for name in (made.id, "c:1", "Policies"):
            assert (await stores.retrieve(name)).id == made.id
        changed = await stores.update(made.id, name="Rules", metadata={"a": "b"})
        assert changed.name == "Rules" and changed.metadata == {"a": "b"}
        assert changed.expires_after == made.expires_after
        assert (await stores.update("c:1", expires_after=None)).expires_at is None
        assert (await stores.update("c:1", metadata=None)).metadata == {}
        raw = await at.server.client.get("/v1/vector_stores/c%3A1")
        assert raw.json()["id"] == made.id
        gone = await stores.delete(made.id)
        assert gone.deleted and gone.object == "vector_store.deleted"
        for name in (made.id, "c:1", "Rules"):
            with pytest.raises(openai.NotFoundError) as refused:
                await stores.retrieve(name)
            assert refused.value.code == "collection_not_found"
        again = await stores.create(name="Rules")
        assert again.model_extra["collection"] == "c:2"  # a number is never given twice


async def test_lists_in_both_directions(reader: Any) -> None:
    async with reader() as at:
        stores = at.openai.vector_stores
        ids = [(await stores.create(name=f"n{number}")).id for number in range(5)]
        assert [store.id async for store in await stores.list(limit=2)] == ids[::-1]
        page = await stores.list(limit=2, before=ids[0], order="desc")
        assert [store.id for store in page.data] == [ids[2], ids[1]] and page.has_more
        page = await stores.list(order="asc", after=ids[1], before=ids[4], limit=10)
        assert [store.id for store in page.data] == ids[2:4] and not page.has_more
        raw = (await at.server.client.get("/v1/vector_stores?limit=1")).json()
        VectorStoreList.model_validate(raw)
        assert raw["first_id"] == raw["last_id"] == ids[4] and raw["has_more"]


async def test_files_in_a_collection(reader: Any) -> None:
    async with reader() as at:
        stores, members = at.openai.vector_stores, at.openai.vector_stores.files
        file = await at.file(LEAVE, "leave.txt")
        store = await stores.create(name="Policies", file_ids=[file])
        await at.until_idle()
        found = await members.retrieve(file, vector_store_id="c:1")
        VectorStoreFile.model_validate(found.model_dump())
        assert found.status == "completed" and found.vector_store_id == store.id
        assert found.usage_bytes > len(LEAVE) and found.last_error is None
        other = await members.create_and_poll(
            await at.file(PETS, "pets.txt"),
            vector_store_id=store.id,
            attributes={"year": 2024, "open": True},
            chunking_strategy={
                "type": "static",
                "static": {"max_chunk_size_tokens": 100, "chunk_overlap_tokens": 10},
            },
            poll_interval_ms=20,
        )
        assert other.status == "completed" and other.attributes == {"year": 2024, "open": True}
        assert other.chunking_strategy.static.max_chunk_size_tokens == 100
        counts = (await stores.retrieve(store.id)).file_counts
        assert (counts.completed, counts.total) == (2, 2)
        listed = [member.id async for member in await members.list(store.id, limit=1)]
        assert listed == [other.id, file]
        assert (await members.list(store.id, filter="failed")).data == []
        content = [part async for part in await members.content(file, vector_store_id=store.id)]
        assert [(part.type, part.text) for part in content] == [("text", LEAVE)]
        updated = await members.update(other.id, vector_store_id=store.id, attributes={"year": 2})
        assert updated.attributes == {"year": 2}
        gone = await members.delete(file, vector_store_id=store.id)
        assert gone.deleted and gone.object == "vector_store.file.deleted"
        assert await at.rows() == 1
        with pytest.raises(openai.NotFoundError, match=file):
            await members.retrieve(file, vector_store_id=store.id)
        assert (await at.openai.files.retrieve(file)).id == file  # the file itself stays
        await at.openai.files.delete(other.id)
        assert await at.rows() == 0
        assert (await stores.retrieve(store.id)).file_counts.total == 0


async def test_the_same_bytes_again_replace(reader: Any) -> None:
    async with reader() as at:
        members = at.openai.vector_stores.files
        store = await at.collection("Notes", one=LEAVE)
        (old,) = (await members.list(store)).data
        new = await members.upload_and_poll(
            vector_store_id=store, file=("two.txt", LEAVE.encode()), poll_interval_ms=20
        )
        assert [member.id for member in (await members.list(store)).data] == [new.id] != [old.id]
        await at.until_rows(1)
        again = await members.create_and_poll(
            new.id, vector_store_id=store, attributes={"a": 1}, poll_interval_ms=20
        )
        assert again.status == "completed" and again.attributes == {"a": 1}
        await at.until_rows(1)
        assert at.embedder.asked.count(LEAVE) == 2  # what is there and as it was is not read again


async def test_files_that_cannot_be_read_say_why(reader: Any) -> None:
    async with reader() as at:
        members = at.openai.vector_stores.files
        store = (await at.openai.vector_stores.create(name="n")).id
        for data, name in ((b"", "empty.txt"), (b"%PDF-1.7 nothing", "broken.pdf")):
            failed = await members.upload_and_poll(
                vector_store_id=store, file=(name, data), poll_interval_ms=20
            )
            assert failed.status == "failed" and failed.last_error.message
            assert failed.last_error.code in ("invalid_file", "unsupported_file")
        at.embedder.fails_on = "poison"
        broken = await members.upload_and_poll(
            vector_store_id=store, file=("p.txt", b"poison pill"), poll_interval_ms=20
        )
        assert broken.last_error.code == "server_error"
        at.embedder.fails_on = None
        retried = await members.create_and_poll(
            broken.id, vector_store_id=store, poll_interval_ms=20
        )
        assert retried.status == "completed"
        counts = (await at.openai.vector_stores.retrieve(store)).file_counts
        assert (counts.completed, counts.failed, counts.total) == (1, 2, 3)


async def test_batches(reader: Any) -> None:
    async with reader() as at:
        batches = at.openai.vector_stores.file_batches
        store = (await at.openai.vector_stores.create(name="n")).id
        done = await batches.upload_and_poll(
            store,
            files=[(f"{n}.txt", f"This is number {n}".encode()) for n in range(4)],
            poll_interval_ms=20,
        )
        FileBatch.model_validate(done.model_dump())
        assert done.status == "completed" and done.file_counts.completed == 4
        assert await batches.retrieve(done.id, vector_store_id=store) == done
        files = [m.id async for m in await batches.list_files(done.id, vector_store_id=store)]
        assert len(files) == 4
        own = [{"file_id": files[0], "attributes": {"n": 0}}, {"file_id": files[1]}]
        await batches.create_and_poll(store, files=own, poll_interval_ms=20)
        member = await at.openai.vector_stores.files.retrieve(files[0], vector_store_id=store)
        assert member.attributes == {"n": 0}
        for wrong in ({}, {"file_ids": files, "files": own}):
            with pytest.raises(openai.BadRequestError, match="either"):
                await batches.create(store, **wrong)
        with pytest.raises(openai.NotFoundError, match="file-none"):
            await batches.create(store, file_ids=[files[0], "file-none"])
        with pytest.raises(openai.NotFoundError, match="vsfb_none"):
            await batches.retrieve("vsfb_none", vector_store_id=store)


async def test_a_batch_is_cancelled_while_it_is_read(reader: Any) -> None:
    async with reader() as at:
        batches = at.openai.vector_stores.file_batches
        store = (await at.openai.vector_stores.create(name="n")).id
        at.embedder.gate.clear()
        files = [await at.file(f"This is number {n}") for n in range(6)]
        batch = await batches.create(store, file_ids=files)
        assert batch.status == "in_progress" and batch.file_counts.in_progress == 6
        assert (await at.openai.vector_stores.retrieve(store)).status == "in_progress"
        await asyncio.sleep(0.1)
        cancelled = await batches.cancel(batch.id, vector_store_id=store)
        assert cancelled.status == "cancelled" and cancelled.file_counts.cancelled == 6
        at.embedder.gate.set()
        await at.collection("Other", after=PETS)  # whoever comes after finds a free place
        await at.until_rows(1)
        again = await batches.create_and_poll(store, file_ids=files, poll_interval_ms=20)
        assert again.status == "completed" and again.file_counts.completed == 6


async def test_searches(reader: Any) -> None:
    async with reader() as at:
        stores = at.openai.vector_stores
        store = await at.collection("Notes", leave=LEAVE, pets=PETS)
        page = await stores.search("Notes", query="how many days of annual leave")
        SearchResults.model_validate(
            {"object": page.object, "search_query": page.search_query, "has_more": page.has_more}
            | {"data": [result.model_dump() for result in page.data], "next_page": None}
        )
        assert page.data[0].filename == "leave.txt" and page.data[0].content[0].text == LEAVE
        assert 0 < page.data[0].score <= 1
        extra = page.data[0].model_extra or {}
        assert 0 < extra["similarity"] <= 1 and extra["similarity"] != page.data[0].score
        both = await stores.search(store, query=["annual leave", "dogs on Fridays"])
        assert {result.filename for result in both.data[:2]} == {"leave.txt", "pets.txt"}
        for asked in (page, both):
            scores = [result.score for result in asked.data]
            assert len(scores) == 2 and scores == sorted(scores, reverse=True)
        best = {"score_threshold": page.data[0].score - 1e-6}
        only = await stores.search(
            "Notes", query="how many days of annual leave", ranking_options=cast(Any, best)
        )
        assert [result.filename for result in only.data] == ["leave.txt"]
        one = await stores.search(store, query="dogs leave", max_num_results=1)
        assert len(one.data) == 1
        strict = {"score_threshold": 0.99}
        assert (await stores.search(store, query="dogs", ranking_options=strict)).data == []
        for wrong, param in (
            ({"query": ""}, "query"),
            ({"query": []}, "query"),
            ({"query": "x", "max_num_results": 51}, "max_num_results"),
            ({"query": "x", "filters": {"type": "like", "key": "a", "value": 1}}, "filters.type"),
            ({"query": "x", "filters": {"type": "in", "key": "a", "value": 1}}, "filters"),
        ):
            response = await at.server.client.post(f"/v1/vector_stores/{store}/search", json=wrong)
            assert response.status_code == 400, wrong
            assert response.json()["error"]["param"].startswith(param)


async def test_filters_by_attributes(reader: Any) -> None:
    async with reader() as at:
        stores = at.openai.vector_stores
        store = (await stores.create(name="n")).id
        for year in (2022, 2023, 2024):
            await stores.files.create_and_poll(
                await at.file(f"The report of {year}", f"{year}.txt"),
                vector_store_id=store,
                attributes={"year": year, "kind": "report"},
                poll_interval_ms=20,
            )

        async def found(**filters: Any) -> set[str]:
            page = await stores.search(store, query="The report", filters=filters)
            return {result.filename[:4] for result in page.data}

        assert await found(type="gte", key="year", value=2023) == {"2023", "2024"}
        assert await found(type="in", key="year", value=[2022, 2024]) == {"2022", "2024"}
        assert await found(type="eq", key="kind", value="letter") == set()
        older = {"type": "lt", "key": "year", "value": 2023}
        newest = {"type": "eq", "key": "year", "value": 2024}
        assert await found(type="or", filters=[older, newest]) == {"2022", "2024"}


async def test_the_model_writes_the_query(reader: Any) -> None:
    async with reader("annual leave", plugins=("structured", "knowledge")) as at:
        await at.collection("Notes", leave=LEAVE, pets=PETS)
        page = await at.openai.vector_stores.search(
            "Notes", query="I would like to stay at home", rewrite_query=True
        )
        assert page.search_query == ["annual leave"]
        assert page.data[0].filename == "leave.txt"


async def test_a_collection_expires_when_it_is_not_used(reader: Any) -> None:
    clock = TestClock()
    async with reader(clock=clock) as at:
        stores = at.openai.vector_stores
        store = await at.collection("Notes", leave=LEAVE)
        await stores.update(store, expires_after={"anchor": "last_active_at", "days": 1})
        clock.advance(hours=20)
        assert (await stores.search(store, query="annual leave")).data
        clock.advance(hours=20)
        assert (await stores.retrieve(store)).status == "completed"  # the search was a use
        clock.advance(hours=5)
        expired = await stores.retrieve(store)
        assert expired.status == "expired" and expired.file_counts.total == 0
        assert await at.rows() == 0
        with pytest.raises(openai.NotFoundError, match="expired") as refused:
            await stores.search(store, query="annual leave")
        assert refused.value.code == "collection_not_found"
        with pytest.raises(openai.NotFoundError):
            await stores.retrieve("Notes")
        assert (await stores.delete(store)).deleted


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({"metadata": {"a": 1}}, "metadata.a"),
        ({"metadata": {str(n): "" for n in range(17)}}, "metadata"),
        ({"expires_after": {"anchor": "created_at", "days": 1}}, "expires_after.anchor"),
        ({"expires_after": {"anchor": "last_active_at", "days": 0}}, "expires_after.days"),
        ({"file_ids": ["file-none"]}, "file_ids"),
        ({"chunking_strategy": {"type": "odd"}}, "chunking_strategy"),
        (
            {
                "chunking_strategy": {
                    "type": "static",
                    "static": {"max_chunk_size_tokens": 100, "chunk_overlap_tokens": 51},
                }
            },
            "chunking_strategy",
        ),
    ],
)
async def test_bodies_that_are_refused(reader: Any, body: Any, param: str) -> None:
    async with reader() as at:
        response = await at.server.client.post("/v1/vector_stores", json=body)
        assert response.status_code == (404 if param == "file_ids" else 400), response.text
        assert response.json()["error"]["param"].startswith(param)
        assert (await at.openai.vector_stores.list()).data == []


async def test_two_collections_of_one_name(reader: Any) -> None:
    async with reader() as at:
        for _ in range(2):
            await at.openai.vector_stores.create(name="Twice")
        with pytest.raises(openai.BadRequestError, match="c:1, c:2"):
            await at.openai.vector_stores.retrieve("Twice")
        refused = await at.server.chat("Hello?", knowledge="Twice")
        assert refused.status_code == 400
        assert refused.json()["error"]["code"] == "invalid_knowledge"


async def test_null_is_what_openai_takes_it_for(reader: Any) -> None:
    """Every field that OpenAI's types let be null, and those that other clients send so."""
    async with reader() as at:
        stores, client = at.openai.vector_stores, at.server.client
        nothing: dict[str, Any] = dict.fromkeys(
            ("name", "description", "metadata", "expires_after", "file_ids", "chunking_strategy")
        )
        made = await client.post("/v1/vector_stores", json=nothing)
        assert made.status_code == 200 and made.json()["name"] == ""
        store = (await stores.create(name="Notes", metadata={"a": "b"})).id
        days = {"anchor": "last_active_at", "days": 3}
        await stores.update(store, expires_after=cast(Any, days))
        same = await stores.update(store, name=None)
        assert same.name == "Notes" and same.expires_after and same.metadata == {"a": "b"}
        bare = await stores.update(store, name=None, expires_after=None, metadata=None)
        assert (bare.name, bare.expires_after, bare.metadata) == ("Notes", None, {})

        file = await at.file("one text")
        path = f"/v1/vector_stores/{store}"
        options = {"attributes": None, "chunking_strategy": None}
        member = await client.post(f"{path}/files", json={"file_id": file, **options})
        assert member.status_code == 200 and member.json()["attributes"] == {}
        cleared = await stores.files.update(file, vector_store_id=store, attributes=None)
        assert cleared.attributes == {}
        for batch in (
            {"file_ids": [file], "files": None, **options},
            {"files": [{"file_id": file, **options}], "file_ids": None, **options},
        ):
            assert (await client.post(f"{path}/file_batches", json=batch)).status_code == 200
        await at.until_idle()
        for ranking in (None, {"ranker": None, "score_threshold": None}):
            asked = {"filters": None, "max_num_results": None, "rewrite_query": None}
            response = await client.post(
                f"{path}/search", json={"query": "text", "ranking_options": ranking, **asked}
            )
            assert response.status_code == 200 and response.json()["data"]


@pytest.mark.parametrize(
    ("pairs", "told"),
    [
        ({str(n): "" for n in range(17)}, "17 keys are too many; there can be 16"),
        ({"k" * 65: "v"}, "has 65 characters; there can be 16 keys of 1 to 64"),
        ({"": "v"}, "the key '' has 0 characters"),
        ({"topic": "v" * 513}, "the value of 'topic' has 513 characters; .* at most 512"),
    ],
)
async def test_pairs_that_are_too_much(reader: Any, pairs: dict[str, str], told: str) -> None:
    async with reader() as at:
        store = (await at.openai.vector_stores.create(name="n")).id
        file = await at.file("one text")
        stores = at.openai.vector_stores
        for param, attempt in (
            ("metadata", stores.create(metadata=pairs)),
            ("metadata", stores.update(store, metadata=pairs)),
            ("attributes", stores.files.create(store, file_id=file, attributes=pairs)),
            ("attributes", stores.files.update(file, vector_store_id=store, attributes=pairs)),
            ("attributes", stores.file_batches.create(store, file_ids=[file], attributes=pairs)),
        ):
            with pytest.raises(openai.BadRequestError, match=told) as refused:
                await attempt
            assert refused.value.param == param
