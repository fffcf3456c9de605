"""The store on a real folder: what was added is found, what was deleted is gone."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hookline import InvalidRequest, StartError
from hookline_knowledge.chunks import Chunk
from hookline_knowledge.store import Query, Store
from hookline_knowledge.store.space import Space
from hookline_knowledge.store.store import table_name

MODEL = "letters"
LETTERS = "abcdefghijklmnopqrstuvwxyz"


def vector(text: str) -> list[float]:
    counts = np.array([text.lower().count(letter) for letter in LETTERS], float)
    counts = counts if counts.any() else np.ones(len(LETTERS))
    return [float(number) for number in counts / np.linalg.norm(counts)]


def chunks(*texts: str, location: str = "page 1") -> list[Chunk]:
    """Chunks that follow each other without a gap."""
    made, start = [], 0
    for text in texts:
        made.append(Chunk(text, location, 0, start, start + len(text)))
        start += len(text)
    return made


async def add(store: Store, collection: int, document: int, *texts: str, **about: Any) -> int:
    vectors = [vector(text) for text in texts]
    model = about.pop("model", MODEL)
    return await store.add(model, collection, document, chunks(*texts, **about), vectors)


async def texts(store: Store, question: str, **about: Any) -> list[str]:
    query = Query(question, vector(question), about.pop("model", MODEL), **about)
    return [hit.text for hit in await store.search(query)]


@asynccontextmanager
async def opened(folder: Path, **options: Any) -> AsyncIterator[Store]:
    store = Store(str(folder), **options)
    await store.open()
    try:
        yield store
    finally:
        await store.close()


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    async with opened(tmp_path / "store") as store:
        yield store


async def test_what_was_added_is_found_at_once(store: Store) -> None:
    await add(store, 1, 10, "The barn is red.", location="page 3")
    await add(store, 1, 11, "Ships sail on water.")
    (first, *_) = await store.search(Query("red barn", vector("red barn"), MODEL))
    assert (first.collection, first.document, first.position) == (1, 10, 0)
    assert (first.text, first.location) == ("The barn is red.", "page 3")
    assert 0.8 < first.similarity < 1


async def test_an_empty_store_answers_nothing(store: Store) -> None:
    assert await texts(store, "anything") == []
    assert await store.count() == 0
    assert await store.models() == []


@pytest.mark.parametrize(
    "question", ["", " ", "the", "?!", "a\0b", "barn'); --", "AND OR (", "x" * 9000]
)
async def test_odd_questions_do_no_harm(store: Store, question: str) -> None:
    await add(store, 1, 10, "The barn is red.")
    assert len(await texts(store, question)) == 1


async def test_words_are_found_that_vectors_miss(store: Store) -> None:
    for number in range(80):
        await add(store, 1, number, f"stain satin saint {number}")
    await add(store, 1, 99, "zebra quartz fjord antis")
    found = await texts(store, "antis", limit=3)
    assert any("zebra" in text for text in found)


async def test_only_the_asked_collections_and_documents_answer(store: Store) -> None:
    for collection in (1, 2):
        for document in (1, 2):
            await add(
                store, collection, collection * 10 + document, f"barn {collection} {document}"
            )
    assert len(await texts(store, "barn")) == 4
    assert sorted(await texts(store, "barn", collections=[2])) == ["barn 2 1", "barn 2 2"]
    assert await texts(store, "barn", collections=[1, 2], documents=[12]) == ["barn 1 2"]
    assert await texts(store, "barn", collections=[]) == []
    assert await texts(store, "barn", documents=[]) == []
    assert await texts(store, "barn", collections=[3]) == []


async def test_neighbours_are_one_answer(store: Store) -> None:
    await add(store, 1, 10, "The barn is ", "very red. ", "zzzzzzz ", "The barn is old.")
    found = await store.search(Query("barn is red", vector("barn is red"), MODEL, limit=3))
    assert [hit.text for hit in found] == ["The barn is very red. ", "The barn is old."]
    assert [hit.position for hit in found] == [0, 3]


async def test_below_the_floor_nothing_is_an_answer(store: Store) -> None:
    await add(store, 1, 10, "zzzz")
    assert await texts(store, "zzzz aaaaaaaaaaaa", floor=0.9) == []
    assert await texts(store, "zzzz", floor=0.9) == ["zzzz"]


async def test_similarity_does_not_depend_on_what_else_is_there(store: Store) -> None:
    await add(store, 1, 10, "The barn is red.")
    query = Query("red barn", vector("red barn"), MODEL, limit=1)
    (before,) = await store.search(query)
    for number in range(20, 40):
        await add(store, 2, number, f"a barn number {number}")
    (after,) = await store.search(Query("red barn", vector("red barn"), MODEL, [1], limit=1))
    assert after.similarity == before.similarity
    expected = np.dot(vector("red barn"), vector("The barn is red."))
    assert before.similarity == pytest.approx(expected, abs=1e-6)


async def test_deleting_leaves_no_row(store: Store) -> None:
    await add(store, 1, 10, "The barn ", "is red.")
    await add(store, 1, 11, "The barn is old.")
    await add(store, 2, 12, "A barn elsewhere.")
    await store.delete([10, 77])
    assert await store.count() == 2
    assert await store.chunks(10) == []
    await store.delete_collections([1])
    assert await store.count([1]) == 0
    assert await texts(store, "barn") == ["A barn elsewhere."]
    await store.delete([])
    assert await store.count() == 1


async def test_a_documents_chunks_come_back_in_order(store: Store) -> None:
    wanted = [f"part {number} " for number in range(30)]
    size = await add(store, 1, 10, *wanted)
    assert [chunk.text for chunk in await store.chunks(10)] == wanted
    assert size > 30 * 26 * 4
    assert await store.add(MODEL, 1, 11, [], []) == 0


async def test_vectors_that_do_not_fit_are_no_documents(store: Store) -> None:
    with pytest.raises(ValueError, match="1 chunks"):
        await store.add(MODEL, 1, 10, chunks("one"), [vector("a"), vector("b")])
    assert await store.count() == 0
    await add(store, 1, 10, "one")
    with pytest.raises(InvalidRequest, match="26"):
        await store.add(MODEL, 1, 11, chunks("two"), [[1.0, 0.0]])


async def test_everything_survives_a_restart(tmp_path: Path) -> None:
    async with opened(tmp_path) as store:
        await add(store, 1, 10, "The barn is red.")
    async with opened(tmp_path) as store:
        assert await texts(store, "barn") == ["The barn is red."]
        assert await store.models([1]) == [MODEL]


async def test_other_stores_on_the_folder_see_everything_at_once(tmp_path: Path) -> None:
    async with opened(tmp_path) as one, opened(tmp_path) as other:
        await add(one, 1, 10, "The barn is red.")
        assert await texts(other, "barn") == ["The barn is red."]
        await other.delete([10])
        assert await texts(one, "barn") == []


async def test_many_at_once(store: Store) -> None:
    numbers = range(12)
    await asyncio.gather(*(add(store, 1, number, f"barn {number}") for number in numbers))
    assert await store.count([1]) == 12
    await asyncio.gather(*(store.delete([number]) for number in numbers))
    assert await store.count() == 0


# Models


async def test_a_collection_refuses_another_model(store: Store) -> None:
    await add(store, 1, 10, "The barn is red.")
    with pytest.raises(InvalidRequest, match=r"'letters'.*'other'.*reembed") as refused:
        await texts(store, "barn", model="other", collections=[1])
    assert refused.value.code == "invalid_knowledge"
    with pytest.raises(InvalidRequest, match="reembed"):
        await add(store, 1, 11, "More.", model="other")
    await add(store, 2, 12, "Another barn.", model="other")
    assert await texts(store, "barn", model="other", collections=[2]) == ["Another barn."]
    assert sorted(await store.models()) == ["letters", "other"]


async def test_documents_move_to_another_model(store: Store) -> None:
    await add(store, 1, 10, "The barn ", "is red.")
    await add(store, 1, 11, "The barn is old.")
    assert await store.outdated("other", [1]) == [10, 11]
    for document in await store.outdated("other", [1]):
        vectors = [[1.0, 0.0] for _ in await store.chunks(document)]
        await store.reembed("other", document, vectors)
    assert await store.outdated("other") == []
    assert await store.models() == ["other"]
    assert await store.count([1]) == 3
    (first, *_) = await store.search(Query("old", [1.0, 0.0], "other", [1]))
    assert first.similarity == 1


async def test_names_of_models_make_names_of_tables() -> None:
    names = ["a/b:c", "a b c", "ümlaut", "A" * 200, "../../etc"]
    made = {table_name(name) for name in names}
    assert len(made) == len(names)
    assert all(set(name) <= set(LETTERS + LETTERS.upper() + "0123456789_.-") for name in made)
    assert max(map(len, made)) < 100


# What goes wrong


async def test_a_place_that_cannot_be_used_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    with pytest.raises(StartError, match=r"file.*cannot be opened"):
        await Store(str(tmp_path / "file" / "store")).open()


async def test_a_table_of_another_version_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hookline_knowledge.store.space.SCHEMA", "99")
    async with opened(tmp_path) as store:
        await add(store, 1, 10, "The barn is red.")
    monkeypatch.undo()
    with pytest.raises(StartError, match="schema 99"):
        await Store(str(tmp_path)).open()


CRASHING = """
    import asyncio, sys
    sys.path.insert(0, sys.argv[2])
    from test_store import add, Store

    async def main():
        store = Store(sys.argv[1])
        await store.open()
        for number in range(10_000):
            await add(store, 1, number, *[f"barn {number} {part} " for part in range(50)])
            print(number, flush=True)

    asyncio.run(main())
"""


async def test_a_killed_process_leaves_whole_documents(tmp_path: Path) -> None:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", textwrap.dedent(CRASHING), str(tmp_path / "store")),
        str(Path(__file__).parent),
        stdout=subprocess.PIPE,
    )
    assert process.stdout is not None
    done = [await process.stdout.readline() for _ in range(5)]
    os.kill(process.pid, signal.SIGKILL)
    await process.wait()
    async with opened(tmp_path / "store") as store:
        sizes = [len(await store.chunks(number)) for number in range(len(done) + 20)]
        assert sizes[: len(done)] == [50] * len(done)
        assert set(sizes) <= {0, 50}
        await add(store, 1, 999, "The barn goes on.")
        assert await store.count() == sum(sizes) + 1


# Beyond what can be compared one by one


def blobs(count: int, rng: np.random.Generator) -> np.ndarray:
    """Vectors around a few centres, like those of texts about a few subjects."""
    centres = rng.normal(size=(12, 24))
    points = centres[rng.integers(0, 12, count)] + rng.normal(scale=0.5, size=(count, 24))
    points /= np.linalg.norm(points, axis=1, keepdims=True)
    return points


async def test_a_large_table_gets_a_graph_that_finds_the_same(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    vectors = blobs(3000, rng)
    async with opened(tmp_path, index_from=2000) as store:
        for document in range(3):
            part = vectors[document * 1000 : document * 1000 + 1000]
            made = chunks(*(f"x{document}x{number}" for number in range(1000)))
            await store.add(MODEL, document, document, made, part.tolist())
        (space,) = store._spaces.values()
        await space.tidy()
        assert space._indexed
        kept = [await recall(store, vectors, query, [0, 1, 2]) for query in blobs(20, rng)]
        assert np.mean(kept) >= 0.98
        one = [await recall(store, vectors[:1000], query, [0]) for query in blobs(20, rng)]
        assert np.mean(one) == 1
    async with opened(tmp_path, index_from=2000) as again:
        (space,) = again._spaces.values()
        assert space._indexed


async def recall(
    store: Store, vectors: np.ndarray, query: np.ndarray, collections: Sequence[int]
) -> float:
    best = np.argsort(-(vectors @ query))[:10]
    wanted = {f"x{place // 1000}x{place % 1000}" for place in best.tolist()}
    found = await store._spaces[MODEL].search(
        Query("", query.tolist(), MODEL, collections, limit=10)
    )
    return len(wanted & {hit.text for hit in found}) / 10


async def test_tidying_joins_files_and_forgets_versions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from datetime import timedelta

    monkeypatch.setattr("hookline_knowledge.store.space.OLD_VERSIONS", timedelta(milliseconds=1))
    async with opened(tmp_path) as store:
        for number in range(8):
            await add(store, 1, number, f"barn {number}")
        await store.delete([0, 1])
        (space,) = store._spaces.values()
        before = len(files(tmp_path))
        await space.tidy()
        assert len(files(tmp_path)) < before
        assert len(await space._table.list_versions()) <= 2
        assert await store.count() == 6
        assert len(await texts(store, "barn")) == 6


def files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


async def test_a_write_is_tried_again_after_a_conflict(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    await add(store, 1, 10, "The barn is red.")
    (space,) = store._spaces.values()
    original, tries = space._table.add, []

    class Table:
        def __getattr__(self, name: str) -> Any:
            return getattr(original.__self__, name)

        async def add(self, rows: Any) -> Any:
            tries.append(rows)
            if len(tries) < 3:
                raise RuntimeError("Retryable commit conflict for version 7")
            return await original(rows)

    monkeypatch.setattr(space, "_table", Table())
    await add(store, 1, 11, "The barn is old.")
    assert len(tries) == 3
    assert await store.count() == 2
    assert isinstance(space, Space)


async def test_a_relative_folder_is_one_of_the_working_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    async with opened(Path("db")) as store:
        await add(store, 1, 10, "The barn is red.")
    assert list((tmp_path / "db").glob("*.lance"))


async def test_indexes_do_not_fall_into_ever_more_parts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hookline_knowledge.store.space.MOST_PARTS", 2)
    rng = np.random.default_rng(1)
    async with opened(tmp_path, index_from=500) as store:
        for document in range(6):
            made = chunks(*(f"x{document}x{number}" for number in range(300)))
            await store.add(MODEL, 1, document, made, blobs(300, rng).tolist())
            (space,) = store._spaces.values()
            await space.tidy()
            assert await space._parts("vector") <= 2
            assert await space._parts("text") <= 2
        assert space._indexed
        found = await space.search(Query("x5x7", blobs(1, rng)[0].tolist(), MODEL, limit=100))
        assert "x5x7" in {hit.text for hit in found}
