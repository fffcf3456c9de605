"""The providers that come with the plugin, and how their troubles are told apart."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from typing import Any

import httpx
import pytest

from hookline_websearch import Hit, ProviderError, Query
from hookline_websearch.providers import MediaWiki, SearXNG
from hookline_websearch.providers.searxng import plain

Answer = Callable[[httpx.Request], httpx.Response]


def searxng(answer: Answer, url: str = "http://search.test:8888/") -> SearXNG:
    return SearXNG(httpx.AsyncClient(transport=httpx.MockTransport(answer)), url)


def says(body: Any, status: int = 200, **headers: str) -> Answer:
    return lambda request: httpx.Response(status, json=body, headers=headers)


def fails(error: Exception) -> Answer:
    def answer(request: httpx.Request) -> httpx.Response:
        raise error

    return answer


async def test_results_of_searxng() -> None:
    result = {
        "url": "https://a.example/",
        "title": " A ",
        "content": "About A",
        "positions": [2, 5],
        "publishedDate": "2026-03-02T10:00:00",
    }
    odd = {"url": "https://b.example/", "title": None, "positions": "x", "publishedDate": "soon"}
    body = {"results": [result, odd, {"title": "no address"}, "no object"]}
    found = await searxng(says(body)).search(Query("a"))
    a = Hit("https://a.example/", "A", "About A", date(2026, 3, 2), (2, 5))
    assert found.hits == [a, Hit("https://b.example/")]
    assert found.notes == ()


async def test_what_searxng_is_asked() -> None:
    asked: list[httpx.QueryParams] = []

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append(request.url.params)
        assert request.url.path == "/sub/search"
        return httpx.Response(200, json={"results": []})

    provider = searxng(answer, "http://search.test/sub/")
    await provider.search(Query("!g tall", language="de", seconds=2.0))
    assert asked == [
        httpx.QueryParams(q="g tall", format="json", language="de", timeout_limit="1.70")
    ]


async def test_a_time_range_that_leaves_nothing_is_dropped() -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        ranged = "time_range" in request.url.params
        results = [] if ranged else [{"url": "https://a.example/"}]
        return httpx.Response(200, json={"results": results})

    found = await searxng(answer).search(Query("a", time_range="day"))
    assert [hit.url for hit in found.hits] == ["https://a.example/"]
    assert "time range" in found.notes[0]


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (says({}, 403), "json"),
        (says({}, 429), "limiter"),
        (
            says({}, 302, Location="https://u:p@other.test/search"),
            "redirects to https://other.test",
        ),
        (says({}, 500), "status 500"),
        (says([1]), "is not SearXNG"),
        (says({"answer": 1}), "is not SearXNG"),
        (lambda request: httpx.Response(200, html="<p>Welcome</p>"), "is not SearXNG"),
        (
            fails(httpx.ConnectError("refused")),
            r"^SearXNG cannot be reached at http://search.test:8888/search: refused\. "
            r"'hookline websearch setup' says how",
        ),
        (fails(httpx.ReadTimeout("slow")), "did not answer within 5.0 seconds"),
    ],
)
async def test_troubles_of_searxng(answer: Answer, said: str) -> None:
    with pytest.raises(ProviderError, match=said):
        await searxng(answer).search(Query("a"))


async def test_a_password_in_the_address_is_never_told() -> None:
    provider = searxng(fails(httpx.ConnectError("refused")), "http://me:secret@search.test/")
    with pytest.raises(ProviderError) as raised:
        await provider.search(Query("a"))
    assert "secret" not in str(raised.value)


async def test_engines_that_did_not_answer_are_named() -> None:
    body = {"results": [], "unresponsive_engines": [["one", "timeout"], ["two", "CAPTCHA"]]}
    found = await searxng(says(body)).search(Query("a"))
    assert found.notes == ("Search engines that did not answer: one (timeout), two (CAPTCHA).",)


@pytest.mark.parametrize(
    ("query", "sent"),
    [
        ("!g cats", "g cats"),
        ("cats !!images !wp", "cats images wp"),
        (":de Katzen <3", "de Katzen 3"),
        ("C++ a<b what? x:y", "C++ a<b what? x:y"),
    ],
)
def test_commands_of_searxng_are_taken_out(query: str, sent: str) -> None:
    assert plain(query) == sent


def wiki(answer: Answer) -> MediaWiki:
    client = httpx.AsyncClient(transport=httpx.MockTransport(answer))
    return MediaWiki(client, "https://wiki.test/w/api.php")


async def test_results_of_a_wiki() -> None:
    asked: list[httpx.QueryParams] = []
    pages = [
        {"pageid": 7, "fullurl": "https://wiki.test/wiki/Seven"},
        {"pageid": 8, "fullurl": "https://wiki.test/wiki/Eight"},
    ]
    search = [
        {
            "pageid": 8,
            "title": "Eight",
            "snippet": 'An <span class="searchmatch">eight</span> &amp; more',
            "timestamp": "2026-01-05T12:00:00Z",
        },
        {"pageid": 7, "title": "Seven"},
        {"pageid": 9, "title": "without an address"},
    ]

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append(request.url.params)
        return httpx.Response(200, json={"query": {"pages": pages, "search": search}})

    found = await wiki(answer).search(Query("eight " * 100))
    assert found.hits == [
        Hit("https://wiki.test/wiki/Eight", "Eight", "An eight & more", date(2026, 1, 5)),
        Hit("https://wiki.test/wiki/Seven", "Seven"),
    ]
    assert len(asked[0]["srsearch"]) == 300


async def test_a_wiki_that_finds_nothing_or_refuses() -> None:
    assert (await wiki(says({"batchcomplete": True})).search(Query("a"))).hits == []
    with pytest.raises(ProviderError, match="search is disabled"):
        await wiki(says({"error": {"info": "Text search is disabled."}})).search(Query("a"))
