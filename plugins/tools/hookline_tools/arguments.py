"""How the arguments of a call are written."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from hookline_tools.reading import Reading, Text

Say = Callable[[str], None]


class ArgumentStyle(Protocol):
    """What stands between the name of a function and the end of its call."""

    def tree(self, schema: Mapping[str, Any]) -> Any:
        """What it must look like, as the tree of a tagged `hookline.ConstraintSpec`.

        Raises ValueError for a schema that cannot be written this way.
        """
        ...

    def read(self, text: Text, schema: Mapping[str, Any], say: Say) -> Reading[None]:
        """Takes exactly the arguments; says them as pieces of JSON as they come."""
        ...


class JsonArguments:
    """A JSON object."""

    def tree(self, schema: Mapping[str, Any]) -> Any:
        """The schema itself."""
        return {"schema": schema}

    def read(self, text: Text, schema: Mapping[str, Any], say: Say) -> Reading[None]:
        """Passes the object on."""
        scanner = _ObjectEnd()
        while True:
            length = scanner.feed(text.ahead)
            said, text.ahead = text.ahead[:length], text.ahead[length:]
            say(said)
            if scanner.found:
                return
            yield


class _ObjectEnd:
    """Looks for the end of a JSON object."""

    def __init__(self) -> None:
        self._depth = 0
        self._in_string = False
        self._escaped = False
        self.found = False

    def feed(self, text: str) -> int:
        """How many characters of this text belong to the object."""
        for place, character in enumerate(text):
            self._take(character)
            if self.found:
                return place + 1
        return len(text)

    def _take(self, character: str) -> None:
        if self._in_string:
            self._in_string = self._escaped or character != '"'
            self._escaped = character == "\\" and not self._escaped
        elif character == '"':
            self._in_string = True
        elif character in "{[":
            self._depth += 1
        elif character in "}]":
            self._depth -= 1
            self.found = self._depth == 0
