"""Messages that no search can help with."""

from __future__ import annotations

import pytest

from hookline_websearch.smalltalk import needs_no_search

GREETINGS = (
    *("Hello!", "hi there", "Thanks a lot!", "Good morning", "How are you today?", "Bye!"),
    *("hey, how’s it going?", "Guten Tag", "wie geht es dir?", "¡Hola!", "bom dia", "你好！"),
)
SUMS = (
    *("2+2", "What is 2+2?", "what's 17 * 23", "12 plus 5", "Calculate 144/12", "7 - 3", "1+1=?"),
    *("sqrt(16)", "what is the square root of 81?", "15% of 80", "How much is 15 percent of 80?"),
    *("(12.5 - 3) / 4", "2^10", "What does 6 times 7 make?", "what is 7-3?", "3 × 4 ="),
)
QUESTIONS = (
    *("What is up there?", "good day spa", "Good Will Hunting", "hello world program", "ok", ""),
    *("Who won in 2024?", "what is 9/11?", "24/7", "555-1234", "2024-05-01", "1914-1918", "5G"),
    *("How much is a bitcoin?", "thanks to whom was it found?", "5 x 5 tile", "How is Berlin?"),
    "Hello! What is the tallest lighthouse on the northern shore, and who has built it?",
)


@pytest.mark.parametrize("text", [*GREETINGS, *SUMS])
def test_what_needs_no_search(text: str) -> None:
    reason = needs_no_search(text)
    assert reason and ("greeting" in reason) == (text in GREETINGS)


@pytest.mark.parametrize("text", QUESTIONS)
def test_what_a_model_must_judge(text: str) -> None:
    assert needs_no_search(text) is None
