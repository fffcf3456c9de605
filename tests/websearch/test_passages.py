"""Pages in pieces."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from hookline_websearch.passages import LONGEST, MOST, passages_of

SENTENCE = "The lamp of the lighthouse was lit again that evening. "
PAGE = f"""\
# Lighthouses

Short introduction.

## History

{SENTENCE * 40}

## Code

```python
def lit():

    return "## no heading"
```

| name | height |
|---|---|
{"| north | 30 |" + chr(10)}{chr(10).join(f"| tower {n} | {n} m |" for n in range(100))}
"""


def test_a_page_is_cut_where_it_has_seams() -> None:
    passages = passages_of(3, PAGE)
    assert [passage.place for passage in passages] == list(range(len(passages)))
    assert {passage.page for passage in passages} == {3}
    assert passages[0].text == "# Lighthouses\n\nShort introduction."
    history = [p for p in passages if "History" in p.whole]
    assert len(history) >= 3
    assert all(p.text.rstrip().endswith("evening.") for p in history)
    assert history[0].heading == "" and history[1].heading == "## History"
    (code,) = [p for p in passages if "```python" in p.text]
    assert '```python\ndef lit():\n\n    return "## no heading"\n```' in code.text
    assert all(line.startswith("|") for p in passages[-2:] for line in p.text.splitlines())


def test_nothing_is_lost() -> None:
    together = "".join("".join(passage.text.split()) for passage in passages_of(0, PAGE))
    assert together == "".join(PAGE.split())


@given(st.text(alphabet="a #`|\n.", max_size=3000))
def test_any_text_comes_in_pieces_that_are_not_too_long(text: str) -> None:
    passages = passages_of(0, text)
    together = "".join("".join(passage.text.split()) for passage in passages)
    headings = {line for line in text.splitlines() if line.lstrip().startswith("#")}
    assert headings or together == "".join(text.split())
    longest_headings = sum(map(len, headings))
    assert all(len(passage.text) <= LONGEST + longest_headings + 4 for passage in passages)


def test_a_page_without_seams_is_cut_all_the_same() -> None:
    passages = passages_of(0, "x" * 5000)
    assert [len(passage.text) for passage in passages[:2]] == [LONGEST, LONGEST]
    assert len(passages_of(0, (SENTENCE * 20 + "\n\n") * 1000)) == MOST
    assert passages_of(0, " \n\n ") == []
