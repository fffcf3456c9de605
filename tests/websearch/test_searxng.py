"""A real SearXNG, whose engines ask a site that the tests serve."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from hookline_websearch import ProviderError, Query
from hookline_websearch.providers import SearXNG
from hookline_websearch.searching import search
from hookline_websearch.setup.searxng_settings import write


@pytest.fixture
async def client() -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(trust_env=False) as client:
        yield client


async def test_results_in_their_order(searxng: Any, client: httpx.AsyncClient) -> None:
    urls = [searxng.site.add("lamp", f"/{n}", "", snippet=f"Lamp {n}.") for n in range(3)]
    found = await SearXNG(client, searxng.url).search(Query("lamp"))
    assert [hit.url for hit in found.hits] == urls
    assert found.hits[0].title == "About lamp"
    assert found.hits[1].snippet == "Lamp 1."
    assert found.hits[2].places == (3,)
    assert found.notes == ()


async def test_several_queries_at_once(searxng: Any, client: httpx.AsyncClient) -> None:
    one, two = (searxng.site.add(word, f"/{word}", "") for word in ("lamp", "tower"))
    both = searxng.site.url("/both")
    for word in ("lamp", "tower"):
        searxng.site.results[word].append((both, ""))
    found = await search([SearXNG(client, searxng.url)], [Query("lamp"), Query("tower")])
    assert [hit.url for hit in found.hits] == [both, one, two]


async def test_commands_in_a_query_do_nothing(searxng: Any, client: httpx.AsyncClient) -> None:
    url = searxng.site.add("lamp", "/lamp", "")
    found = await SearXNG(client, searxng.url).search(Query("!!g :fr lamp <1 !zz"))
    assert [hit.url for hit in found.hits] == [url]
    assert "/find?q=g+fr+lamp+1+zz" in searxng.site.asked


async def test_a_language_is_passed_on(searxng: Any, client: httpx.AsyncClient) -> None:
    url = searxng.site.add("lampe", "/lampe", "")
    for language in ("auto", "all", "de", "pt-BR"):
        found = await SearXNG(client, searxng.url).search(Query("lampe", language))
        assert [hit.url for hit in found.hits] == [url], language


async def test_an_unsupported_time_range_costs_nothing(
    searxng: Any, client: httpx.AsyncClient
) -> None:
    url = searxng.site.add("lamp", "/lamp", "")
    found = await SearXNG(client, searxng.url).search(Query("lamp", time_range="day"))
    assert [hit.url for hit in found.hits] == [url]
    assert "time range" in found.notes[-1]


async def test_an_engine_that_breaks_is_named(searxng: Any, client: httpx.AsyncClient) -> None:
    url = searxng.site.add("lamp", "/lamp", "")
    found = await SearXNG(client, searxng.url).search(Query("lamp break"))
    assert [hit.url for hit in found.hits] == [url]
    (note,) = found.notes
    assert note.startswith("Search engines that did not answer: wobbly (")


async def test_an_engine_that_hangs_does_not_cost_the_others(
    searxng: Any, client: httpx.AsyncClient
) -> None:
    url = searxng.site.add("lamp", "/lamp", "")
    query = Query("lamp hang", seconds=3.0)
    found = await SearXNG(client, searxng.url).search(query)
    assert [hit.url for hit in found.hits] == [url]
    assert "wobbly (timeout)" in found.notes[0]


async def test_nothing_is_found(searxng: Any, client: httpx.AsyncClient) -> None:
    found = await SearXNG(client, searxng.url).search(Query("zebra"))
    assert (found.hits, found.notes) == ([], ())


async def test_a_searxng_that_is_not_there(client: httpx.AsyncClient, unused_port: int) -> None:
    with pytest.raises(ProviderError, match="cannot be reached"):
        await SearXNG(client, f"http://127.0.0.1:{unused_port}").search(Query("lamp"))


async def test_an_answer_from_end_to_end(searching: Any, model: Any, searxng: Any) -> None:
    text = "The lamp of the northern lighthouse burns whale oil and smells of fish."
    page = f"<title>Lamps</title><article><h1>Lamps</h1><p>{text}</p></article>"
    url = searxng.site.add("lamp", "/lamp", page)
    model.plans = [["lamp oil northern lighthouse"]]
    about = {"ports": [searxng.site.port], "searxng_url": searxng.url}
    async with searching(**about) as server:
        body = (await server.chat("What does the lamp burn?", web_search=True)).json()
    assert [source["url"] for source in body["sources"]] == [url]
    assert text in model.prompts[-1]
    assert body["web_search"]["note"] is None


async def test_the_settings_that_setup_writes(
    searxng_run: Any, client: httpx.AsyncClient, unused_port: int, tmp_path: Path
) -> None:
    """They work; without JSON the search says what is missing."""
    path = tmp_path / "folder" / "settings.yml"
    write(path, unused_port)
    with searxng_run(path, unused_port) as url:
        response = await client.get(f"{url}/search", params={"q": "", "format": "json"})
        assert response.status_code == 400  # the query is empty; without JSON it were a 403
    path.write_text(path.read_text().replace("    - json\n", ""))
    with (
        searxng_run(path, unused_port) as url,
        pytest.raises(ProviderError, match="search: formats"),
    ):
        await SearXNG(client, url).search(Query("lamp"))
