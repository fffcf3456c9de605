"""Pages are read in processes, which may be slow, break or be killed."""

from __future__ import annotations

import asyncio
import io
import json
from collections.abc import AsyncIterator

import pytest

from hookline_websearch.content import worker
from hookline_websearch.content.pool import ReadingPool, TooHard

HTML = b"<title>T</title><h1>Head</h1>" + b"<p>Some text that is worth to be read.</p>" * 20
URL = "http://a.test/"


@pytest.fixture
async def pool() -> AsyncIterator[ReadingPool]:
    opened = ReadingPool(processes=1, seconds=60)
    yield opened
    await opened.close()


async def test_a_page_is_read_and_cut(pool: ReadingPool) -> None:
    content = await pool.read(HTML, "text/html", "utf-8", URL, 50)
    assert (content.title, len(content.text), content.cut) == ("Head", 50, True)
    whole = await pool.read(HTML, "text/html", "", URL, 5000)
    assert whole.text.startswith("# Head\n\nSome text")
    assert not whole.cut


async def test_pages_wait_for_their_turn(pool: ReadingPool) -> None:
    contents = await asyncio.gather(
        *(pool.read(b"text %d" % n, "text/plain", "", URL, 100) for n in range(6))
    )
    assert [content.text for content in contents] == [f"text {n}" for n in range(6)]


async def test_a_page_that_takes_too_long_costs_its_process_only() -> None:
    pool = ReadingPool(processes=1, seconds=0.001)
    with pytest.raises(TooHard):
        await pool.read(HTML * 500, "text/html", "", URL, 100)
    pool._seconds = 60
    assert (await pool.read(b"next", "text/plain", "", URL, 100)).text == "next"
    await pool.close()


async def test_a_page_that_takes_long_makes_room_for_others() -> None:
    pool = ReadingPool(processes=1, seconds=60, slow=0.05)
    hostile = b"<table><tr><td>a b c</td></tr></table>" * 9000  # takes a minute
    first, second = (
        asyncio.create_task(pool.read(hostile, "text/html", "", URL, 100)) for _ in range(2)
    )
    assert (await pool.read(b"next", "text/plain", "", URL, 100)).text == "next"
    with pytest.raises(TooHard):
        await first
    assert not second.done()
    await pool.close()


async def test_a_reader_who_leaves_costs_its_process_only(pool: ReadingPool) -> None:
    pool.warm_up()
    reading = asyncio.create_task(pool.read(HTML * 2000, "text/html", "", URL, 100))
    await asyncio.sleep(0.05)
    reading.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reading
    assert (await pool.read(b"next", "text/plain", "", URL, 100)).text == "next"


def test_the_worker_says_what_failed_and_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    def extract(body: bytes, **_: str) -> None:
        raise MemoryError(body)

    monkeypatch.setattr(worker, "extract", extract)
    request = {"media_type": "text/plain", "charset": "", "url": URL, "most": 9, "size": 3}
    line = json.dumps(request).encode() + b"\n"
    answers = io.BytesIO()
    worker.serve(io.BytesIO(line + b"a\nb" + line + b"cde"), answers)
    assert answers.getvalue().splitlines() == [b"{}", *[b'{"failed": "MemoryError"}'] * 2]
