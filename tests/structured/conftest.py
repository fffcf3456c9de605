"""A vocabulary of bytes, and documents made by walking through masks."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from hookline import Vocabulary
from hookline_structured.analysis import analyse
from hookline_structured.grammar import LLGrammar
from hookline_structured.options import json_source
from hookline_structured.tokens import Tokens

BEGIN, END = 256, 257
VOCABULARY = Vocabulary(
    (*(bytes([byte]) for byte in range(256)), b"<s>", b"</s>"),
    frozenset({BEGIN, END}),
    frozenset({END}),
)


@pytest.fixture(scope="session")
def tokens() -> Tokens:
    return Tokens(VOCABULARY, lambda text: list(text.encode()))


@pytest.fixture(scope="session")
def grammar_of(tokens: Tokens) -> Callable[..., LLGrammar]:
    """Compiles a schema for the vocabulary of bytes; raises Refused."""

    def compile_schema(schema: Any, *, compact: bool = True) -> LLGrammar:
        source = json_source(analyse(schema).grammar, compact=compact)
        return LLGrammar(source, tokens, is_json=True)

    return compile_schema


def compact_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


@pytest.fixture(scope="session")
def accepts() -> Callable[[LLGrammar, Any], bool]:
    """Whether a value, written compactly, is a whole answer."""
    return lambda grammar, value: grammar.completes(list(compact_json(value).encode()))


@pytest.fixture(scope="session")
def walk() -> Callable[[LLGrammar, random.Random], Any]:
    """A document that the masks allow, chosen at random; None when it grew too long.

    Closing characters are preferred, so that most walks come to an end.
    """
    closing = np.zeros(len(VOCABULARY.tokens), np.bool_)
    closing[list(b'"]}')] = True

    def go(grammar: LLGrammar, chance: random.Random, most: int = 300) -> Any:
        constraint, said = grammar.start(), bytearray()
        while len(said) < most:
            mask = constraint.mask().copy()
            assert mask.any(), f"no way on after {bytes(said)!r}"
            if mask[END] and (chance.random() < 0.5 or mask.sum() == 1):
                return json.loads(said)
            mask[END] = False
            close = mask & closing
            wanted = close if close.any() and chance.random() < 0.3 else mask
            token = chance.choice(np.flatnonzero(wanted).tolist())
            said.append(token)
            constraint.accept(token)
            if constraint.is_done:
                return json.loads(said)
        return ...

    return go


@pytest.fixture(scope="session")
def chance() -> Callable[[int], random.Random]:
    """A source of chance that always runs the same way."""
    return random.Random
