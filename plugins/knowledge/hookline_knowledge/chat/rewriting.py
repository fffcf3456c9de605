"""The question of a conversation whose last message alone is none."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from hookline import (
    ApiError,
    ConstraintSpec,
    Exchange,
    Message,
    Server,
    split_after_question,
    with_user_text,
)

log = logging.getLogger(__name__)

SHORT_CHARACTERS = 120
"""A longer message says what it is about."""
QUERY_TOKENS = 64
QUERY = r"[^\x00-\x1f\x7f]{2,200}"

INSTRUCTION = """\
---
Do not answer the message above yet. Write the one search query that finds what it asks for. Put \
in the names and words that it only points at. Write the query only, in the language of the \
conversation."""


def can_depend(messages: Sequence[Message]) -> bool:
    """Whether the last user message may need what was said before it."""
    users = [message for message in messages if message.role == "user"]
    return len(users) > 1 and len(users[-1].text.strip()) <= SHORT_CHARACTERS


async def rewritten(server: Server, exchange: Exchange, said: Sequence[Message]) -> str:
    """A query that stands alone for the last user message of what was ``said``: by the model,
    constrained to one short line; where it cannot be constrained or asked, the last two user
    messages as they are.

    The instruction goes to the end, so that the engine reads the conversation once, for the query
    and for the answer.
    """
    try:
        grammar = await server.constraint(ConstraintSpec("regex", QUERY))
        query = await server.ask(
            with_user_text(_asking(exchange, said), INSTRUCTION),
            grammar=grammar,
            max_tokens=QUERY_TOKENS,
            exchange=exchange,
        )
    except ApiError as error:
        log.info("a question is searched for as it is: %s", error.message)
        query = ""
    return query.strip() or joined(said)


def _asking(exchange: Exchange, said: Sequence[Message]) -> list[Message]:
    """The conversation as far as its question, as other plugins made it, but with the question as
    it came and without pictures."""
    question = next(message for message in reversed(said) if message.role == "user")
    before, _ = split_after_question(exchange.messages, question.text)
    return [_without_images(message) for message in [*before[:-1], question]]


def _without_images(message: Message) -> Message:
    return message.model_copy(update={"content": message.text}) if message.images else message


def joined(messages: Sequence[Message]) -> str:
    """The last two user messages in one line."""
    said = [message.text for message in messages if message.role == "user"][-2:]
    return " ".join(" ".join(said).split())
