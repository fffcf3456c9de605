"""Numbers in messages for people."""

from __future__ import annotations

import pytest

from hookline_knowledge.parsing import ParsingSettings
from hookline_knowledge.parsing.unreadable import too_much, too_slow
from hookline_knowledge.wording import counted


@pytest.mark.parametrize(
    ("number", "said"),
    [
        (0, "0 pages"),
        (1, "1 page"),
        (1.0, "1 page"),
        (0.5, "0.5 pages"),
        (2, "2 pages"),
        (20_000, "20,000 pages"),
    ],
)
def test_one_is_no_plural(number: float, said: str) -> None:
    assert counted(number, "page") == said


def test_reasons_why_files_are_not_read() -> None:
    assert "more than 1 second, see" in too_slow(ParsingSettings(seconds=1))
    assert "more than 1 row, see" in too_much("row", 1, "rows").reason
