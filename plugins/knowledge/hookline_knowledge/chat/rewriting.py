"""The question of a conversation whose last message alone is none."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from hookline import ApiError, ConstraintSpec, Message, Server

log = logging.getLogger(__name__)

SHORT_CHARACTERS = 120
"""A longer message says what it is about."""
TURNS = 6
TURN_CHARACTERS = 600
QUERY_TOKENS = 64
QUERY = r"[^\x00-\x1f\x7f]{2,200}"

INSTRUCTION = (
    "You write search queries. Read the conversation and write the one query that finds what its "
    "last message asks for. Put in the names and words that the message only points at. Write the "
    "query only, in the language of the conversation."
)


def can_depend(messages: Sequence[Message]) -> bool:
    """Whether the last user message may need what was said before it."""
    users = [message for message in messages if message.role == "user"]
    return len(users) > 1 and len(users[-1].text.strip()) <= SHORT_CHARACTERS


async def rewritten(server: Server, messages: Sequence[Message]) -> str:
    """A query that stands alone: by the model, constrained to one short line; where it cannot be
    constrained or asked, the last two user messages as they are.

    In a prompt of its own: asked at the end of the conversation, whose prompt would then be read
    once only, small models go on talking instead.
    """
    spec = ConstraintSpec("regex", QUERY)
    told = [
        Message(role="system", content=INSTRUCTION),
        Message(role="user", content=f"{_transcript(messages)}\n\nThe query:"),
    ]
    try:
        grammar = await server.constraint(spec)
        query = await server.ask(told, grammar=grammar, max_tokens=QUERY_TOKENS)
    except ApiError as error:
        log.info("a question is searched for as it is: %s", error.message)
        query = ""
    return query.strip() or joined(messages)


def joined(messages: Sequence[Message]) -> str:
    """The last two user messages in one line."""
    said = [message.text for message in messages if message.role == "user"][-2:]
    return " ".join(" ".join(said).split())


def _transcript(messages: Sequence[Message]) -> str:
    said = [message for message in messages if message.role in ("user", "assistant")][-TURNS:]
    lines = [(m.role, " ".join(m.text[:TURN_CHARACTERS].split())) for m in said]
    return "\n".join(f"{role}: {text}" for role, text in lines if text)
