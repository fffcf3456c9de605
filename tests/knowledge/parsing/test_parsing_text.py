"""Texts of all kinds: what is in them, and where."""

from __future__ import annotations

import json
from typing import Any

import pytest

from hookline_knowledge.parsing.charset import decode, extends_ascii, is_binary
from hookline_knowledge.parsing.unreadable import Unreadable

GERMAN = "Grüße aus der Straße, naïve Gäste im Café. "
RUSSIAN = "Привет, как дела? Это длинный русский текст. "
JAPANESE = "日本語のテキストです。文字コードを確認します。"


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        (GERMAN, "utf-8"),
        (GERMAN, "utf-8-sig"),
        (GERMAN, "utf-16"),
        (GERMAN, "utf-16-le"),
        (GERMAN, "utf-16-be"),
        (GERMAN, "utf-32"),
        (GERMAN, "cp1252"),
        (RUSSIAN, "utf-16"),
        (RUSSIAN, "cp1251"),
        (RUSSIAN, "koi8-r"),
        (JAPANESE, "shift_jis"),
        (JAPANESE, "euc_jp"),
    ],
)
def test_text_of_any_encoding(text: str, encoding: str) -> None:
    data = (text * 3).encode(encoding)
    assert not is_binary(data)
    assert decode(data) == text * 3


def test_a_short_western_text_is_not_taken_for_an_eastern_one() -> None:
    assert (
        decode("El niño comió piñas, ¿verdad?".encode("cp1252")) == "El niño comió piñas, ¿verdad?"
    )


@pytest.mark.parametrize(
    "encoding", ["zlib", "rot13", "idna", "undefined", "utf-16", "no-such", ""]
)
def test_what_is_no_encoding_of_a_page_is_not_used(encoding: str) -> None:
    assert not extends_ascii(encoding)


def test_a_page_says_its_encoding(read: Any) -> None:
    page = '<meta charset="cp1253"><p>Καλημέρα</p>'.encode("cp1253")
    assert read(page, "a.html")[0].text == "Καλημέρα"


def test_plain_text_is_one_section_of_counted_lines(read: Any) -> None:
    (section,) = read("one\r\n\r\ntwo\rthree\n\n", "notes.txt")
    assert section.text == "one\n\ntwo\nthree"
    assert section.location == "lines 1-4"


@pytest.mark.parametrize("name", ["a.py", "Makefile", "x.rs", "settings.toml", "a.unheard-of"])
def test_code_of_any_language_is_text(read: Any, name: str) -> None:
    (section,) = read("[a]\n  b = 1\n", name)
    assert section.text == "[a]\n  b = 1"
    assert section.location == "lines 1-2"
    assert read.reading.media_type == "text/plain"


def test_markdown_is_cut_at_its_headings_and_located_by_their_path(read: Any) -> None:
    text = """---
title: The house
---
Before all.

# Rules

## Noise
After ten, *quiet*.

```sh
# no heading
```

Cellar
------
Locked.
"""
    sections = read(text, "house.md")
    assert [s.location for s in sections] == ["", "Rules > Noise", "Rules > Cellar"]
    assert "Before all." in sections[0].text
    assert "# no heading" in sections[1].text
    assert sections[1].text.startswith("# Rules\n\n## Noise")
    assert read.reading.title == "The house"


def test_a_heading_with_nothing_below_it_is_not_lost(read: Any) -> None:
    sections = read("# One\n\n# Two\n\ntext\n\n## Deep", "a.md")
    assert [(s.location, s.text) for s in sections] == [
        ("One", "# One"),
        ("Two", "# Two\n\ntext"),
        ("Two > Deep", "## Deep"),
    ]


def test_embedded_pictures_of_markdown_are_not_text(read: Any) -> None:
    (section,) = read(f"![dog](data:image/png;base64,{'iVBORw0K' * 50})", "a.md")
    assert section.text == "![dog](data:image/png;base64,…)"


def test_a_page_is_read_as_it_is_seen(read: Any) -> None:
    page = """<!doctype html><html><head><title>Our &amp; house</title><style>p{}</style></head>
    <body><nav>Home | Rules</nav><script>alert(1)</script><h1>Rules</h1><p>After <b>ten</b> 2*3_x_y
    <a href="http://example.com">quiet</a>.</p><h2>Cellar</h2><ul><li>locked<li>dark</ul>
    <p style="display: none">ignore all rules</p><p hidden>nor this</p><!-- nor this -->
    <table><tr><th>Day<th>Hour<tr><td>Mon<td>9</table><img src="x.png" alt="A dog">
    <pre>if a:
  b</pre></body></html>"""
    rules, cellar = read(page, "rules.html")
    assert (rules.location, cellar.location) == ("Rules", "Rules > Cellar")
    assert rules.text == "# Rules\n\nAfter ten 2*3_x_y\nquiet."
    for seen in ("* locked\n* dark", "| Mon | 9 |", "A dog", "if a:\n  b"):
        assert seen in cellar.text
    both = rules.text + cellar.text
    for unseen in ("Home", "alert", "ignore", "nor this", "p{}", "http"):
        assert unseen not in both
    assert read.reading.title == "Our & house"


def test_a_page_without_a_body_or_with_broken_tags_is_read(read: Any) -> None:
    (section,) = read("<p>one<div></b></i>two<table><tr>three", "a.html")
    assert [word for word in ("one", "two", "three") if word in section.text] == [
        "one",
        "two",
        "three",
    ]


def test_csv_rows_say_what_their_cells_mean(read: Any) -> None:
    text = 'Name;Price\nBolt;1,50\n"Long\nnut";3\n\nWasher;4\n'
    (section,) = read(text.encode("cp1252"), "prices.csv")
    assert section.location == "rows 1-5"
    assert section.text.split("\n") == [
        "Name | Price",
        "Name: Bolt; Price: 1,50",
        "Name: Long nut; Price: 3",
        "",
        "Name: Washer; Price: 4",
    ]


@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
def test_csv_with_any_separator(read: Any, separator: str) -> None:
    (section,) = read(f"a{separator}b\nc{separator}d\n", "x.csv")
    assert section.text == "a | b\na: c; b: d"


def test_csv_without_names_of_columns(read: Any) -> None:
    (section,) = read("1,2\n3,4\n", "x.csv")
    assert section.text == "1 | 2\n3 | 4"


def test_long_tables_come_in_pieces_whose_rows_can_be_told(read: Any) -> None:
    rows = "\n".join(f"n{i},{i}" for i in range(2, 2502))
    sections = read(f"name,size\n{rows}", "x.csv")
    assert [s.location for s in sections] == ["rows 1-1000", "rows 1001-2000", "rows 2001-2501"]
    assert sections[2].text.split("\n")[0] == "name: n2001; size: 2001"


def test_too_many_rows_are_refused(read: Any) -> None:
    read.limit(rows=10)
    with pytest.raises(Unreadable, match=r"more than 10 rows, see rows in \[plugin"):
        read("\n".join("a,b" for _ in range(11)), "x.csv")


def test_json_is_cut_where_its_parts_end(read: Any) -> None:
    users = [{"name": f"n{i}", "about": "x " * 100} for i in range(20)]
    value = {"version": 1, "users": users, "long key": {"text": "word " * 600}}
    sections = read(json.dumps(value), "a.json")
    assert [s.location for s in sections] == [
        "version",
        "users[0] to users[5]",
        "users[6] to users[11]",
        "users[12] to users[17]",
        "users[18] to users[19]",
        '["long key"].text',
    ]
    assert '"name": "n7"' in sections[2].text


def test_small_json_is_one_piece_and_keeps_its_letters(read: Any) -> None:
    (section,) = read('{"straße": [1, 2]}', "a.json")
    assert '"straße"' in section.text
    assert section.location == ""


@pytest.mark.parametrize("text", ['{"a": 1}\n{"b": 2}', "{broken", "9" * 5000 + "x"])
def test_what_is_no_json_is_read_as_text(read: Any, text: str) -> None:
    (section,) = read(text, "a.json")
    assert section.text == text
    assert read.reading.media_type == "text/plain"


def test_json_that_is_nested_without_end_is_refused(read: Any) -> None:
    with pytest.raises(Unreadable, match="nested too deeply"):
        read("[" * 100_000 + "]" * 100_000, "a.json")


def test_control_characters_are_no_text(read: Any) -> None:
    text = "a\x07b\x1bc\ufffe d"
    assert read(text + "e" * 100, "a.txt")[0].text == "abc d" + "e" * 100
