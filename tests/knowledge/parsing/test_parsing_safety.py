"""Files that are made to do harm: each costs itself only, within its limits, and says why."""

from __future__ import annotations

import asyncio
import io
import os
import zlib
from collections.abc import Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import psutil
import pytest
from PIL import Image, ImageDraw, ImageFont

from hookline_knowledge.parsing import Parser, ParsingSettings, Unreadable

MIB = 2**20
W = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
LAUGHS = '<!DOCTYPE x [<!ENTITY a "aaaaaaaaaa">' + "".join(
    f'<!ENTITY {chr(98 + i)} "{("&" + chr(97 + i) + ";") * 10}">' for i in range(9)
)
SLOW = b"a,b\n" + b"1,2\n" * 150_000
"""Takes a good part of a second."""


@asynccontextmanager
async def parsing(**limits: Any) -> Any:
    parser = Parser(ParsingSettings(**{"workers": 1, "ocr": False, **limits}))
    try:
        yield parser
    finally:
        await parser.close()


async def refusal(parser: Parser, data: bytes | Path, name: str) -> str:
    with pytest.raises(Unreadable) as told:
        await parser.parse(data, name)
    return told.value.reason


def workers() -> list[psutil.Process]:
    found = []
    for child in psutil.Process().children():
        with suppress(psutil.Error):
            if "hookline_knowledge.parsing.worker" in child.cmdline():
                found.append(child)
    return found


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(30):
        while not condition():
            await asyncio.sleep(0.01)


async def test_a_file_is_read_from_memory_and_from_disk(parser: Any, tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("one\ntwo")
    for source in (path, path.read_bytes()):
        document = await parser.parse(source, "notes.txt")
        assert document.title == "notes"
        assert document.text == "one\ntwo"
        assert document.media_type == "text/plain"
        assert document.notes == ()
    assert len(workers()) == 1, "the process stays for the next file"


async def test_long_texts_come_whole(parser: Any) -> None:
    text = "\n".join(f"line {number} ä" for number in range(30_000))
    document = await parser.parse(text.encode(), "long.txt")
    assert document.sections[0].text == text
    assert document.sections[0].location == "lines 1-30000"


async def test_halves_of_characters_do_not_get_out(parser: Any) -> None:
    document = await parser.parse(b'["\\ud800 x"]', "a.json")
    document.text.encode()
    assert "x" in document.text


async def test_a_path_that_is_no_file(parser: Any, tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "missing", Path("/dev/zero")):
        assert "no such file" in await refusal(parser, path, "a.txt")


async def test_files_over_the_limit_are_not_opened(tmp_path: Path) -> None:
    path = tmp_path / "large.txt"
    with path.open("wb") as file:
        file.truncate(2 * MIB)
    async with parsing(file_mb=1) as parser:
        for source in (path, b"x" * (MIB + 1)):
            assert "larger than 1 MiB, see file_mb" in await refusal(parser, source, "large.txt")


async def test_too_much_text_is_refused() -> None:
    async with parsing(characters=1000) as parser:
        assert (await parser.parse(b"x" * 1000, "a.txt")).text
        assert "more than 1,000 characters" in await refusal(parser, b"x" * 1001, "a.txt")


async def test_what_unpacks_to_too_much_is_refused(files: Any) -> None:
    async with parsing(expanded_mb=4) as parser:
        large = files.zip({"word/document.xml": os.urandom(10) * (MIB // 2)})
        assert "unpacks to 5 MiB" in await refusal(parser, large, "a.docx")
        dense = files.zip({"word/document.xml": b"a" * (2 * MIB)})
        assert "as only a bomb does" in await refusal(parser, dense, "a.docx")


async def test_entities_do_not_grow_and_do_not_fetch(
    parser: Any, files: Any, tmp_path: Path
) -> None:
    (tmp_path / "secret").write_text("SECRET")
    outside = f'<!DOCTYPE x [<!ENTITY j SYSTEM "file://{tmp_path}/secret">'
    for declared in (LAUGHS, outside):
        for name, data in _with_entity(files, f"{declared}]>").items():
            try:
                text = (await parser.parse(data, name)).text
            except Unreadable as error:
                text = error.reason
            assert "SECRET" not in text
            assert len(text) < 1000
    assert len(workers()) == 1, "none of them broke the process"


def _with_entity(files: Any, declared: str) -> dict[str, bytes]:
    body = f"{declared}<w:document {W}><w:body><w:p><w:r><w:t>&j;</w:t></w:r></w:p></w:body>"
    sheet = "xl/worksheets/sheet1.xml"
    xlsx = files.xlsx(S=[["here", "b"]])
    rows = files.parts(xlsx)[sheet].decode().replace(">here<", ">&j;<")
    book = "META-INF/container.xml"
    epub = files.epub("<html>text</html>")
    contents = files.parts(epub)[book].decode().replace("OEBPS", "&j;OEBPS")
    empty = files.docx(lambda document: None)
    return {
        "a.docx": files.changed(empty, {"word/document.xml": body + "</w:document>"}),
        "a.xlsx": files.changed(xlsx, {sheet: declared + rows}),
        "a.epub": files.changed(epub, {book: declared + contents}),
        "a.html": f"{declared}<html><body>&j;</body></html>".encode(),
    }


async def test_a_pdf_that_unpacks_to_a_bomb_ends_its_process_only(files: Any) -> None:
    packer = zlib.compressobj(9)
    once = b"".join(packer.compress(b" " * MIB) for _ in range(300)) + packer.flush()
    stream = zlib.compress(once, 9).decode("latin-1")
    head = f"<< /Filter [/FlateDecode /FlateDecode] /Length {len(stream)} >>"
    bomb = files.pdf("", extra={5: f"{head}\nstream\n{stream}\nendstream"})
    assert len(bomb) < 5000
    async with parsing(memory_mb=256) as parser:
        reason = await refusal(parser, bomb, "bomb.pdf")
        assert "more than 256 MiB" in reason or "no text" in reason
        assert (await parser.parse(b"fine", "a.txt")).text == "fine"


async def test_memory_is_limited() -> None:
    async with parsing(memory_mb=256) as parser:
        data = b"[" + b"{}," * 5_000_000 + b"{}]"
        assert "more than 256 MiB of memory" in await refusal(parser, data, "a.json")
        assert (await parser.parse(b"fine", "a.txt")).text == "fine"


async def test_time_is_limited() -> None:
    async with parsing(seconds=0.05) as parser:
        with pytest.raises(Unreadable, match=r"more than 0\.05 seconds, see seconds"):
            await parser.parse(SLOW, "slow.csv")
        assert not workers(), "the process that was too slow is gone"
    async with parsing() as parser:
        assert await parser.parse(SLOW, "slow.csv")


async def test_a_process_that_dies_fails_its_file_only() -> None:
    async with parsing() as parser:
        await parser.parse(b"first", "a.txt")
        (process,) = workers()
        task = asyncio.create_task(parser.parse(SLOW, "slow.csv"))
        await asyncio.sleep(0.05)
        process.kill()
        with pytest.raises(Unreadable, match=r"broke \(SIGKILL\)"):
            await task
        assert (await parser.parse(b"next", "a.txt")).text == "next"


async def test_a_process_that_died_while_it_waited_costs_nothing() -> None:
    async with parsing() as parser:
        await parser.parse(b"first", "a.txt")
        (process,) = workers()
        process.kill()
        await until(lambda: not workers())
        await asyncio.sleep(0.05)
        assert (await parser.parse(b"next", "a.txt")).text == "next"


async def test_cancelling_ends_the_process_at_once() -> None:
    async with parsing() as parser:
        await parser.parse(b"first", "a.txt")
        task = asyncio.create_task(parser.parse(SLOW, "slow.csv"))
        await asyncio.sleep(0.05)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert not workers()
        assert (await parser.parse(b"next", "a.txt")).text == "next"


async def test_only_so_many_files_are_read_at_once() -> None:
    async with parsing(workers=2) as parser:
        tasks = [asyncio.create_task(parser.parse(SLOW[:100_000], "a.csv")) for _ in range(6)]
        most = 0
        while not all(task.done() for task in tasks):
            most = max(most, len(workers()))
            await asyncio.sleep(0.01)
        assert {len((await task).sections) for task in tasks} == {25}
        assert most == 2
    assert not workers(), "closing ends them"


async def test_reading_gives_way_to_answering(parser: Any) -> None:
    await parser.parse(b"text", "a.txt")
    (process,) = workers()
    assert process.nice() > psutil.Process().nice()


async def test_no_key_is_in_the_environment_of_a_reader(
    parser: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    monkeypatch.setenv("HOOKLINE_AUTH__KEY", "secret")
    await parser.parse(b"text", "a.txt")
    (process,) = workers()
    environment = process.environ()
    assert "PATH" in environment
    assert "secret" not in environment.values()


async def test_a_scan_is_read_by_ocr() -> None:
    pytest.importorskip("rapidocr")
    picture = Image.new("RGB", (700, 120), "white")
    font = ImageFont.load_default(48)
    ImageDraw.Draw(picture).text((20, 30), "RENT 900 EURO", fill="black", font=font)
    out = io.BytesIO()
    picture.save(out, "PDF", resolution=200)
    async with parsing(ocr=True) as parser:
        document = await parser.parse(out.getvalue(), "scan.pdf")
    assert document.text.split() == ["RENT", "900", "EURO"]
    assert document.sections[0].location == "page 1"


async def test_a_broken_picture_is_told_of_in_words() -> None:
    async with parsing(ocr=True) as parser:
        told = await refusal(parser, b"\x89PNG\r\n\x1a\nbroken", "a.png")
        assert "damaged" in told and "object at 0x" not in told
