"""Reading pages from their addresses to their text."""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from hookline import InvalidRequest
from hookline_websearch.browser.find import find_browser
from hookline_websearch.page import Page

Answers = Callable[..., bytes]

PAGES = Path(__file__).parent.parent / "pages"
PDF = b"%PDF-1.7\n" + b"x" * 100


@pytest.fixture
def article() -> bytes:
    return (PAGES / "article.html").read_bytes()


async def test_pages_come_in_order_with_what_they_say_of_themselves(
    readers: Any, web: Any, answers: Answers, article: bytes
) -> None:
    web.pages["/a"] = answers(article)
    web.pages["/b"] = answers("just words", kind="text/plain")
    heard: list[Page] = []
    async with readers() as reader:
        pages = await reader.read([web.url("/a"), web.url("/no"), web.url("/b")], 30, heard.append)
    first, missing, last = pages
    assert (first.title, first.site) == (
        "Tidal mill grinds flour again after ninety years",
        "The Harbour Courier",
    )
    assert first.date == date(2026, 3, 14)
    assert first.text.startswith("# Tidal mill")
    assert (missing.text, missing.note) == ("", "the site answered 404")
    assert (last.text, last.media_type, last.site) == ("just words", "text/plain", "127.0.0.2")
    assert sorted(page.url for page in heard) == sorted(page.url for page in pages)


async def test_a_page_is_kept_and_one_that_failed_is_not(
    readers: Any, web: Any, answers: Answers, article: bytes
) -> None:
    web.pages["/a"] = answers(article)
    urls = [web.url("/a"), web.url("/no")]
    async with readers() as reader:
        first = await reader.read(urls, 30)
        assert await reader.read(urls, 30) == first
    assert sorted(web.paths) == ["/a", "/no", "/no"]


async def test_what_is_not_there_in_time_is_left_out(
    readers: Any, web: Any, answers: Answers
) -> None:
    async def hang(writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(60)

    async def drip(writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n")
        while True:
            writer.write(b"x")
            await writer.drain()
            await asyncio.sleep(0.05)

    web.pages |= {"/hang": hang, "/drip": drip, "/": answers("words", kind="text/plain")}
    async with readers() as reader:
        await reader.read([web.url("/")], 30)
        pages = await reader.read([web.url(path) for path in ("/hang", "/", "/drip")], 0.5)
        assert [page.note for page in pages] == [
            "it was not read in time",
            "",
            "it was not read in time",
        ]
        async with asyncio.timeout(10):
            while web.open > 1:  # the server that hangs does not see that its client left
                await asyncio.sleep(0.01)


@pytest.mark.parametrize(
    ("kind", "body", "note"),
    [
        ("application/msword", b"\x00\x01", "it is application/msword, which is no text"),
        ("", b"\x00\x01", "it is binary data, which is no text"),
        ("text/html", b"", "there is no text in it"),
        ("application/pdf", PDF, "it is a PDF, and no plugin that reads those is active"),
    ],
)
async def test_why_there_is_no_text(
    readers: Any, web: Any, answers: Answers, kind: str, body: bytes, note: str
) -> None:
    web.pages["/"] = answers(body, kind=kind)
    async with readers() as reader:
        (page,) = await reader.read([web.url("/")], 30)
    assert (page.text, page.note) == ("", note)


class Document:
    title = "Report"
    text = "Page one.\x00\n\nPage two."


async def test_pdf_is_read_by_the_plugin_that_can(readers: Any, web: Any, answers: Answers) -> None:
    asked: list[str] = []

    def documents(data: bytes, name: str) -> Document:
        asked.append(name)
        if b"broken" in data:
            raise InvalidRequest("it is encrypted.")
        return Document()

    web.pages["/some%20report.pdf"] = answers(PDF, kind="application/octet-stream")
    web.pages["/broken.pdf"] = answers(PDF + b"broken", kind="application/pdf")
    web.pages["/large.pdf"] = answers(PDF + bytes(2**20), kind="application/pdf")
    paths = ("/some%20report.pdf", "/broken.pdf", "/large.pdf")
    async with readers(documents, max_page_mb=0.5) as reader:
        pages = await reader.read([web.url(path) for path in paths], 30)
    assert (pages[0].title, pages[0].text) == ("Report", "Page one.\n\nPage two.")
    assert pages[0].media_type == "application/pdf"
    assert pages[1].note == "it is a PDF that cannot be read: it is encrypted."
    assert pages[2].note == "it is a PDF of more than 0.5 MB"
    assert sorted(asked) == ["broken.pdf", "some report.pdf"]


async def test_a_page_that_is_too_long_says_so(readers: Any, web: Any, answers: Answers) -> None:
    web.pages["/chars"] = answers("word " * 1000, kind="text/plain")
    web.pages["/bytes"] = answers("word " * 400_000, kind="text/plain")
    async with readers(max_page_mb=1, max_page_chars=1000) as reader:
        pages = await reader.read([web.url("/chars"), web.url("/bytes")], 30)
    assert [len(page.text) for page in pages] == [1000, 1000]
    assert {page.note for page in pages} == {"only its beginning was read"}


async def test_titles_and_texts_carry_nothing_invisible(
    readers: Any, web: Any, answers: Answers
) -> None:
    text = "A\u202esecret\u200b line\u2028 and <b>more</b> of it. " * 10
    web.pages["/"] = answers(
        f"<title>One\r\nSet-Cookie: x\u202e</title><main><p>{text}</p></main>",
        kind="text/html; charset=utf-8",
    )
    async with readers() as reader:
        (page,) = await reader.read([web.url("/")], 30)
    assert page.title == "One Set-Cookie: x"
    assert not {"\u202e", "\u200b", "\u2028"} & set(page.text)


async def test_without_a_browser_there_is_no_look(readers: Any, web: Any) -> None:
    async with readers() as reader:
        assert not reader.can_look
        look = await reader.look(web.url("/"), 5)
    assert (look.screenshot, look.page.note) == (b"", "the browser is switched off")


@pytest.mark.skipif(isinstance(find_browser(), str), reason=str(find_browser()))
async def test_a_page_that_scripts_write_is_read_with_the_browser(
    readers: Any, web: Any, answers: Answers
) -> None:
    source = (PAGES / "scripted.html").read_text(encoding="utf-8")
    wanted = Counter(re.findall(r"\w+", source.partition("const sections")[2].partition("];")[0]))
    web.pages["/"] = answers(source)
    async with readers(browser=True, browser_seconds=60) as reader:
        assert reader.can_look
        (page,) = await reader.read([web.url("/")], 60)
        look = await reader.look(web.url("/"), 60)
    found = Counter(re.findall(r"\w+", page.text))
    assert 2 * (found & wanted).total() / (found.total() + wanted.total()) >= 0.9
    assert page.title == "Status of the small satellites"
    assert look.page.text == page.text
    assert look.screenshot.startswith(b"\x89PNG")
    assert "Main heading: " in look.design


async def test_what_the_browser_does_not_show_in_time_is_read_without_its_scripts(
    readers: Any, web: Any, answers: Answers, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def never(url: str) -> None:
        await asyncio.sleep(600)

    script = "<script src='/app.js'></script>" * 3
    web.pages["/some"] = answers(f"<title>T</title><p>Some words.</p><div id=app></div>{script}")
    web.pages["/none"] = answers(f"<title>T</title><div id=app></div>{script}")
    async with readers() as reader:
        await reader.read([web.url("/some")], 30)
        monkeypatch.setattr(reader._browser, "problem", None)
        monkeypatch.setattr(reader._browser, "visit", never)
        some, none = await reader.read([web.url("/some"), web.url("/none")], 5)
    assert (some.text, some.late) == ("Some words.", True)
    assert (none.text, none.late) == ("", True)
    assert "the browser did not run them in time" in none.note
