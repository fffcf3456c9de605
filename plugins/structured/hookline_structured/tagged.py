"""Text that is free until something opens a constrained part: how models call tools.

The value of such a constraint is described where `hookline.ConstraintSpec` is.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from hookline_structured.dialect import Schema
from hookline_structured.options import json_options
from hookline_structured.pattern import NotRegular, translate
from hookline_structured.refusal import Place, Refused

ANYTHING = "(?s:.*)"
NODES = "'schema', 'regex', 'until', 'any', 'optional' or 'repeat'"
OTHER_KINDS = ("json_schema", "regex", "grammar")


@dataclass(frozen=True, slots=True)
class Tagged:
    """A tagged constraint that was read."""

    then: Any
    triggers: tuple[str, ...]
    anywhere: bool
    otherwise: tuple[str, Any] | None = None

    @property
    def is_free(self) -> bool:
        """Whether any text may come before ``then``, or instead of it."""
        return bool(self.triggers) and self.otherwise is None

    def schemas(self) -> list[tuple[Place, Any]]:
        """Every JSON schema in it with the first of its places."""
        found: dict[int, tuple[Place, Any]] = {}
        for place, node in _schemas(self.then, ("then",)):
            found.setdefault(id(node), (place, node["schema"]))
        return list(found.values())

    def source(
        self, schemas: Mapping[Place, Schema], special: Mapping[str, int], *, compact: bool
    ) -> str:
        """A grammar for it, but for what comes otherwise.

        ``schemas`` are the rewritten schemas by their place, ``special`` the ids of control tokens
        by their text.
        """
        writer = _Writer(schemas, special, compact)
        writer.rules["start"] = self._start(writer)
        lines = [f"{name}: {rule}" for name, rule in writer.rules.items()]
        if any("TEXT" in line for line in lines):
            lines.append(f"TEXT: /{ANYTHING}/")
        return "\n".join(["%llguidance {}", *lines, ""])

    def _start(self, writer: _Writer) -> str:
        then = writer.write(self.then, ("then",))
        if not self.triggers:
            return then
        heads = [self._head(writer, trigger) for trigger in self.triggers]
        if self.otherwise is not None:
            return f"({' | '.join(heads)}) {then}"
        if self.anywhere:
            return f"({' | '.join(heads)}) {then} | TEXT"
        texts = [trigger for trigger in self.triggers if trigger not in writer.special]
        writer.rules["FREE"] = " & ".join(
            [f"/{ANYTHING}/", *(f"~/[ \\t\\r\\n]*{_escaped(text)}{ANYTHING}/" for text in texts)]
        )
        return f"/[ \\t\\r\\n]*/ ({' | '.join(heads)}) {then} | FREE"

    def _head(self, writer: _Writer, trigger: str) -> str:
        """A trigger with the free text before it."""
        if not self.anywhere:
            return writer.literal(trigger)
        if trigger in writer.special:
            return f"TEXT {writer.literal(trigger)}"
        return writer.rule(f"TEXT {json.dumps(trigger)}", lazy=True)


class _Writer:
    """Writes a tree as rules. A mapping that stands at several places is written once."""

    def __init__(
        self, schemas: Mapping[Place, Schema], special: Mapping[str, int], compact: bool
    ) -> None:
        self.special = special
        self.rules: dict[str, str] = {}
        self._schemas = schemas
        self._compact = compact
        self._written: dict[int, str] = {}

    def rule(self, body: str, *, lazy: bool = False) -> str:
        """The name of a new rule."""
        name = f"rule_{len(self.rules)}"
        self.rules[f"{name}[lazy]" if lazy else name] = body
        return name

    def write(self, tree: Any, place: Place) -> str:
        """A tree as an expression."""
        if isinstance(tree, str):
            return self.literal(tree)
        if isinstance(tree, list):
            parts = [self.write(item, (*place, index)) for index, item in enumerate(tree)]
            return f"({' '.join(parts)})" if parts else '""'
        if id(tree) not in self._written:
            ((kind, value),) = tree.items()
            body = self._node(kind, value, (*place, kind))
            self._written[id(tree)] = self.rule(body, lazy=kind == "until")
        return self._written[id(tree)]

    def literal(self, text: str) -> str:
        """A text as strings and control tokens."""
        found = [(text.find(special), special) for special in self.special if special in text]
        if not found:
            return json.dumps(text)
        at, special = min(found, key=lambda one: (one[0], -len(one[1])))
        parts = [self.literal(part) for part in (text[:at], text[at + len(special) :]) if part]
        parts.insert(bool(at), f"<[{self.special[special]}]>")
        return " ".join(parts)

    def _node(self, kind: str, value: Any, place: Place) -> str:
        match kind:
            case "schema":
                return self._json(self._schemas[place])
            case "regex":
                pattern = translate(value).replace("/", r"\/")
                return f"/{pattern}/"
            case "until":
                return f"TEXT {json.dumps(value)}"
            case "any":
                return " | ".join(self.write(item, (*place, i)) for i, item in enumerate(value))
            case "optional":
                return f"({self.write(value, place)})?"
        return f"({self.write(value, place)})*"

    def _json(self, schema: Schema) -> str:
        if isinstance(schema, bool):
            schema = {} if schema else {"not": {}}
        options = json_options(compact=self._compact)
        return "%json " + json.dumps({"x-guidance": options, **schema})


def read_tagged(value: Any) -> Tagged:
    """The constraint that a plugin asks for. Raises Refused."""
    if not isinstance(value, dict) or "then" not in value:
        raise Refused((), "must be a mapping with 'then'")
    if unknown := value.keys() - {"then", "triggers", "anywhere", "otherwise"}:
        raise Refused((min(unknown),), "is not known")
    triggers, anywhere = value.get("triggers", []), value.get("anywhere", True)
    if not isinstance(triggers, list) or not all(isinstance(t, str) and t for t in triggers):
        raise Refused(("triggers",), "must be a list of texts")
    if not isinstance(anywhere, bool):
        raise Refused(("anywhere",), "must be a boolean")
    _check(value["then"], ("then",))
    otherwise = _otherwise(value.get("otherwise"))
    if otherwise is not None and (anywhere or not triggers):
        raise Refused(("otherwise",), "needs triggers that count only at the beginning")
    return Tagged(value["then"], tuple(triggers), anywhere, otherwise)


def _otherwise(value: Any) -> tuple[str, Any] | None:
    if value is None:
        return None
    if not isinstance(value, dict) or value.keys() - OTHER_KINDS or len(value) != 1:
        raise Refused(("otherwise",), f"must be a mapping with one of {', '.join(OTHER_KINDS)}")
    ((kind, asked),) = value.items()
    return kind, asked


def _check(tree: Any, place: Place) -> None:
    if isinstance(tree, str):
        return
    if isinstance(tree, list):
        for index, item in enumerate(tree):
            _check(item, (*place, index))
        return
    if not isinstance(tree, dict) or len(tree) != 1:
        raise Refused(place, f"must be a text, a list, or a mapping with one of {NODES}")
    ((kind, value),) = tree.items()
    _check_node(kind, value, (*place, kind))


def _check_node(kind: str, value: Any, place: Place) -> None:
    if kind in ("regex", "until"):
        _check_text(kind, value, place)
    elif kind == "any":
        if not isinstance(value, list) or not value:
            raise Refused(place, "must be a list with at least one tree")
        _check(value, place)
    elif kind in ("optional", "repeat"):
        _check(value, place)
    elif kind != "schema":
        raise Refused(place, f"is not known; there are {NODES}")


def _check_text(kind: str, value: Any, place: Place) -> None:
    if not isinstance(value, str) or not value:
        raise Refused(place, "must be a text")
    if kind == "regex":
        try:
            translate(value)
        except NotRegular as error:
            raise Refused(place, str(error)) from error


def _schemas(tree: Any, place: Place) -> Iterator[tuple[Place, Any]]:
    if isinstance(tree, list):
        for index, item in enumerate(tree):
            yield from _schemas(item, (*place, index))
    elif isinstance(tree, dict):
        ((kind, value),) = tree.items()
        if kind == "schema":
            yield (*place, kind), tree
        elif kind in ("any", "optional", "repeat"):
            yield from _schemas(value, (*place, kind))


def _escaped(text: str) -> str:
    """A text as a regular expression."""
    return "".join(c if c.isalnum() else f"\\x{{{ord(c):x}}}" for c in text)
