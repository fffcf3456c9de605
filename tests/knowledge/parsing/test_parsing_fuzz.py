"""Good files of each kind, damaged at random: always a document or a reason."""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from typing import Any

import pytest

from hookline_knowledge.parsing import Unreadable

ROUNDS = int(os.environ.get("FUZZ_ROUNDS", "4"))
"""Damaged files of each kind; set it high to search."""

Damage = Callable[[bytes, random.Random], bytes]


def _flip(data: bytes, chance: random.Random) -> bytes:
    damaged = bytearray(data)
    for _ in range(chance.randint(1, 20)):
        damaged[chance.randrange(len(damaged))] = chance.randrange(256)
    return bytes(damaged)


def _cut(data: bytes, chance: random.Random) -> bytes:
    return data[: chance.randrange(1, len(data))]


def _take_out(data: bytes, chance: random.Random) -> bytes:
    start = chance.randrange(len(data))
    return data[:start] + data[start + chance.randint(1, 200) :]


def _repeat(data: bytes, chance: random.Random) -> bytes:
    start = chance.randrange(len(data))
    return data[:start] + data[start : start + 100] * chance.randint(2, 50) + data[start:]


def _grow_numbers(data: bytes, chance: random.Random) -> bytes:
    places = [at for at, byte in enumerate(data) if byte in b"0123456789"] or [0]
    at = chance.choice(places)
    return data[:at] + b"9" * chance.randint(1, 12) + data[at:]


DAMAGES = (_flip, _cut, _take_out, _repeat, _grow_numbers)


def _slide(deck: Any) -> None:
    deck.slides.add_slide(deck.slide_layouts[1]).shapes.title.text = "Title"


def _good(files: Any) -> dict[str, bytes]:
    mail = files.eml()
    mail.add_alternative("<p>page</p>", subtype="html")
    mail.add_attachment(files.pdf("x"), maintype="application", subtype="pdf", filename="x.pdf")
    return {
        "a.pdf": files.pdf("One", "Two", info="/ID [<00> <00>]"),
        "a.docx": files.docx(lambda document: document.add_heading("Head", 1)),
        "a.pptx": files.pptx(_slide),
        "a.xlsx": files.xlsx(S=[["a", "b"], [1, "x"]]),
        "a.epub": files.epub("<html><body><h1>One</h1><p>x</p></body></html>"),
        "a.eml": mail.as_bytes(),
        "a.html": b"<html><head><title>t</title></head><body><h1>a</h1><table><tr><td>b</table>",
        "a.md": b"---\ntitle: x\n---\n# a\n\n```\nb\n```\n* c\n\nd\n===\n",
        "a.json": b'{"a": [1, 2.5, null, {"b": "c"}], "d": "' + b"word " * 400 + b'"}',
        "a.csv": b'a,b\n1,"two\nlines"\n3,4\n',
        "a.txt": "Grüße\r\naus dem Haus\n".encode("utf-16"),
        "a.png": files.png(),
    }


def _damaged(files: Any, name: str, data: bytes, chance: random.Random) -> bytes:
    """The file damaged, or, for an archive, one of its parts: else its sums would tell at once."""
    damage: Damage = chance.choice(DAMAGES)
    if not data.startswith(b"PK") or chance.random() < 0.3:
        return damage(data, chance)
    parts = files.parts(data)
    part = chance.choice([part for part in parts if parts[part]])
    archive: bytes = files.changed(data, {part: damage(parts[part], chance)})
    return archive


@pytest.mark.timeout(60 * ROUNDS)
async def test_damaged_files_give_a_document_or_a_reason(parser: Any, files: Any) -> None:
    outcomes: dict[str, list[str]] = {"document": [], "reason": []}
    for name, data in _good(files).items():
        assert name == "a.png" or (await parser.parse(data, name)).media_type
        for seed in range(ROUNDS):
            chance = random.Random(f"{name} {seed}")  # noqa: S311
            case = f"{name} {seed}"
            try:
                document = await parser.parse(_damaged(files, name, data, chance), name)
            except Unreadable as error:
                assert error.reason.endswith("."), case
                assert not error.reason.startswith("The process"), case
                outcomes["reason"].append(case)
            else:
                document.text.encode()
                outcomes["document"].append(case)
    assert all(outcomes.values())
