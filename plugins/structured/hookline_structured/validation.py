"""The last look at a finished answer."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import jsonschema_rs

from hookline import Delta

_NOTHING = object()


class WrongAnswer(Exception):
    """A finished answer breaks its schema: a fault of this plugin, never of the client."""


class Validation:
    """A stage that lets everything pass and looks at the whole answer when it has ended.

    ``ends`` are the tokens with which the model ends an answer. An answer that was cut needs only
    to be the beginning of a document. One that begins with one of ``triggers``, or calls a tool,
    is no document.
    """

    def __init__(
        self,
        validator: jsonschema_rs.Validator,
        ends: frozenset[int],
        triggers: tuple[str, ...] = (),
    ) -> None:
        self._validator = validator
        self._ends = ends
        self._triggers = triggers
        self._text: list[str] = []
        self._ended = False
        self._called = False

    def feed(self, delta: Delta) -> Iterable[Delta]:
        """Remembers the text of the answer."""
        if delta.channel == "content":
            self._ended |= any(token.id in self._ends for token in delta.tokens)
            self._text += [] if self._ended else [delta.text]
        self._called |= delta.channel == "tool_call"
        return [delta]

    def finish(self) -> Iterable[Delta]:
        """Raises WrongAnswer, which fails the request."""
        text = "".join(self._text).lstrip()
        if self._called or text.startswith(self._triggers):
            return ()
        try:
            value = json.loads(text)
        except ValueError as error:
            if self._ended:
                raise WrongAnswer(f"the model ended its answer inside the JSON: {error}") from error
            return ()
        if not self._may_go_on(value) and not self._validator.is_valid(value):
            wrong = next(iter(self._validator.iter_errors(value)))
            raise WrongAnswer(f"a finished answer is not valid: {wrong.message[:200]}")
        return ()

    def _may_go_on(self, value: Any) -> bool:
        """Whether this could be cut: a number is the only document that begins with another."""
        return isinstance(value, int | float) and not isinstance(value, bool) and not self._ended
