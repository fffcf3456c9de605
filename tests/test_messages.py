"""Conversations."""

from __future__ import annotations

import pytest

from hookline import Message, TextPart, with_system_text

HELLO = Message(role="user", content="Hello")


@pytest.mark.parametrize("role", ["system", "developer"])
def test_more_text_joins_the_first_system_message(role: str) -> None:
    first = Message.model_validate({"role": role, "content": "Be kind."})
    changed = with_system_text([first, HELLO], "Be brief.")
    assert [message.text for message in changed] == ["Be kind.\n\nBe brief.", "Hello"]
    assert changed[0].role == role
    assert first.text == "Be kind."


def test_parts_stay_parts() -> None:
    first = Message(role="system", content=[TextPart(text="Be kind.")])
    (changed,) = with_system_text([first], "Be brief.")
    assert changed.text == "Be kind.\n\nBe brief."
    assert isinstance(changed.content, list) and len(changed.content) == 2
    assert first.text == "Be kind."


@pytest.mark.parametrize("messages", [[], [HELLO], [HELLO, Message(role="system", content="x")]])
def test_without_a_system_message_at_the_beginning_there_is_one_more(
    messages: list[Message],
) -> None:
    changed = with_system_text(messages, "Be brief.")
    assert changed == [Message(role="system", content="Be brief."), *messages]
