"""Conversations."""

from __future__ import annotations

import pytest

from hookline import Message, TextPart, split_after_question, with_system_text

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


def test_a_question_is_found_again_among_what_others_made_of_the_conversation() -> None:
    talk = [
        Message(role="user", content="Which one?"),
        Message(role="assistant", content="This."),
        Message(role="user", content="Which one?\n\nA passage."),
        Message(role="assistant", content="<tool_call>"),
        Message(role="user", content="<tool_response>"),
    ]
    assert split_after_question(talk, "Which one?") == (talk[:3], talk[3:])
    assert split_after_question(talk, "Who?") == (talk, [])
