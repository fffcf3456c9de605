"""Several providers and queries at once."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from hookline_websearch import Hit, Hits, ProviderError, Query
from hookline_websearch.searching import search


class Provider:
    def __init__(self, name: str, answer: Callable[[Query], Awaitable[Hits]]) -> None:
        self.name = name
        self._answer = answer

    async def search(self, query: Query) -> Hits:
        return await self._answer(query)


def finds(*paths: str) -> Provider:
    async def answer(query: Query) -> Hits:
        return Hits([Hit(f"https://{query.text}.example/{path}") for path in paths])

    return Provider("finds", answer)


def breaks(error: Exception) -> Provider:
    async def answer(query: Query) -> Hits:
        raise error

    return Provider("breaks", answer)


async def hang(query: Query) -> Hits:
    await asyncio.sleep(60)
    return Hits()


async def test_all_are_asked_and_merged() -> None:
    found = await search([finds("a"), finds("b", "a")], [Query("one"), Query("two")])
    assert [hit.url for hit in found.hits] == [
        f"https://{name}.example/{path}" for path in "ab" for name in ("one", "two")
    ]
    assert found.notes == ()


async def test_one_that_fails_costs_its_own_answer_only() -> None:
    broken = [breaks(ProviderError("It is closed.")), breaks(KeyError("x")), Provider("slow", hang)]
    found = await search([*broken, finds("a")], [Query("one", seconds=0.1)])
    assert [hit.url for hit in found.hits] == ["https://one.example/a"]
    assert found.notes == (
        "It is closed.",
        "'breaks' failed: KeyError.",
        "'slow' did not answer in 0.1 seconds.",
    )


async def test_the_same_note_is_said_once() -> None:
    found = await search([breaks(ProviderError("It is closed."))], [Query("a"), Query("b")])
    assert found.notes == ("It is closed.",)
