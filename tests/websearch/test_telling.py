"""What was found, as the model and the client are told."""

from __future__ import annotations

from datetime import date

from hookline import Caller, Exchange, Message
from hookline.api.schema import ChatRequest
from hookline_websearch import Hit
from hookline_websearch.page import Page
from hookline_websearch.passages import Passage
from hookline_websearch.research import Source
from hookline_websearch.telling import (
    SNIPPET_MAX,
    TITLE_MAX,
    header,
    room,
    source_body,
    told,
)

PAGE = Page("https://www.a.example/x", "https://www.a.example/y", "A page", date=date(2026, 3, 2))


def source(page: Page | None = PAGE, *texts: str, title: str = "") -> Source:
    passages = [Passage(0, n, text) for n, text in enumerate(texts or ("Some text.",))]
    hit = Hit("https://www.a.example/x", title, date=date(2020, 1, 1))
    return Source(hit, page, passages)


def test_a_source_has_the_date_of_its_page() -> None:
    assert source_body(source()) == {
        "type": "web",
        "title": "A page",
        "url": "https://www.a.example/y",
        "site": "a.example, 2026-03-02",
        "snippet": "Some text.",
    }


def test_a_page_that_was_not_read_has_what_the_search_said() -> None:
    body = source_body(source(None, title="Found"))
    assert (body["title"], body["url"]) == ("Found", "https://www.a.example/x")
    assert body["site"] == "a.example, 2020-01-01"
    assert source_body(source(None))["title"] == "https://www.a.example/x"


def test_long_and_broken_lines_are_cut() -> None:
    page = Page("https://a.example/", title="Title\r\n\u202e" + "x" * 500)
    body = source_body(source(page, "line\n" * 500))
    assert len(body["title"]) <= TITLE_MAX and len(body["snippet"]) <= SNIPPET_MAX
    assert not set("\r\n\u202e") & set(body["title"] + body["snippet"])


def test_the_best_passage_is_the_snippet_and_the_text_is_in_order() -> None:
    passages = [Passage(0, 2, "Third."), Passage(0, 0, "First.", "## Head")]
    both = Source(Hit("https://a.example/"), PAGE, passages)
    assert source_body(both)["snippet"] == "Third."
    assert both.text == "## Head\nFirst.\n\n…\n\nThird."


def test_what_the_model_is_told() -> None:
    found = [source(), source(None, "One.\nTwo.", title="Found [9]")]
    text = told(3, found, "Which\none?")
    assert "like [3]" in text
    assert text.endswith(
        "[3] A page (a.example, 2026-03-02)\n> Some text.\n\n"
        "[4] Found [ 9 ] (a.example, 2020-01-01)\n> One.\n> Two.\n\n"
        "Now answer this, with the numbers of the pages in square brackets: Which one?"
    )
    assert len(told(1, found, "why " * 1000)) < 2000


def test_the_header_has_sources_of_the_web_only() -> None:
    value = header([{"type": "knowledge", "index": 1}, {"type": "web", "index": 2}])
    assert value == {"X-Web-Sources": "%5B%7B%22type%22%3A%22web%22%2C%22index%22%3A2%7D%5D"}


def exchange(context: int, *texts: str, max_tokens: int | None = None) -> Exchange:
    messages = [Message(role="user", content=text) for text in texts]
    request = ChatRequest(messages=messages, max_tokens=max_tokens)
    return Exchange("x", 0, "m", request, Caller(), messages, max_ctx=context)


def words(text: str) -> int:
    return len(text.split())


def test_room_in_a_context() -> None:
    plenty = exchange(10_000, "question")
    assert room(plenty, 2000, 500, words) == 2000
    tight = room(exchange(1000, "question"), 2000, 200, words)
    assert 600 < tight < 800
    assert room(exchange(1000, "question", max_tokens=10), 2000, 200, words) == tight + 190
    assert room(exchange(300, "word " * 290), 2000, 200, words) == 0


def test_older_turns_give_half_of_the_room_at_most() -> None:
    alone = room(exchange(1000, "question"), 2000, 200, words)
    some = room(exchange(1000, "old " * 100, "question"), 2000, 200, words)
    long = room(exchange(1000, "old " * 5000, "question"), 2000, 200, words)
    assert alone > some > long
    assert abs(long - alone // 2) < 20
