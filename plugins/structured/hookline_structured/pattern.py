"""Regular expressions as JSON Schema means them (ECMA-262), written for Rust's regex syntax.

Both look alike and differ in what matters: ``[a&&b]`` is a class of three characters here and an
intersection there, ``.`` stops at other line ends, ``\\w`` is ASCII here and Unicode there. Where
engines disagree about a class, the translation takes what all of them accept, so that a text that
follows it matches everywhere. What is not regular (look-around, back references, word borders) is
refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

LONGEST = 10_000
"""Characters of a pattern."""

DEEPEST = 60
"""Groups inside groups."""

_LINE_ENDS = r"\n\r\u{2028}\u{2029}"
_DIGIT = "0-9"
_WORD = "A-Za-z0-9_"
_NARROW_SPACE = r"\t\n\x0B\x0C\r\x20"
_WIDE_SPACE = _NARROW_SPACE + r"\x1C-\x1F\u{85}\u{A0}\u{FEFF}\u{2028}\u{2029}\p{Z}"
_CONTROLS = {"n": r"\n", "r": r"\r", "t": r"\t", "v": r"\x0B", "f": r"\x0C"}
_HEX = re.compile(r"x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|u\{([0-9a-fA-F]{1,6})\}")
_LOW = re.compile(r"\\u([dD][c-fC-F][0-9a-fA-F]{2})")
_PROPERTY = re.compile(r"[pP]\{[A-Za-z_=]+\}")
_SET = re.compile(r"\\[dDwWsSpP]")
_QUANTIFIER = re.compile(r"\*|\+|\?|\{\d+(?:,\d*)?\}")
_GROUP = re.compile(r"\((?:\?:|\?P?<[A-Za-z_]\w*>|(?!\?))")


class NotRegular(ValueError):
    """The pattern is broken, or means something that no finite automaton can do."""


def translate(pattern: str) -> str:
    """An ECMA-262 pattern in Rust's syntax, not anchored. Raises NotRegular."""
    if len(pattern) > LONGEST:
        raise NotRegular(f"the pattern has more than {LONGEST} characters")
    return "".join(_Translator(pattern).parts())


class _Translator:
    """One pass from left to right; ``_at`` is the next character."""

    def __init__(self, pattern: str) -> None:
        self._text = pattern
        self._at = 0

    def parts(self) -> Iterator[str]:
        depth = 0
        while self._at < len(self._text):
            char = self._text[self._at]
            if char == "(":
                depth += 1
                if depth > DEEPEST:
                    raise NotRegular(f"groups are nested deeper than {DEEPEST}")
                yield self._group()
            elif char in ")|^$":
                depth -= char == ")"
                self._at += 1
                yield char
            else:
                yield self._atom(char)
            if char not in "(|^":
                yield self._quantifier()
            if depth < 0:
                raise NotRegular("a ')' closes no group")
        if depth:
            raise NotRegular("a group is not closed")

    def _group(self) -> str:
        match = _GROUP.match(self._text, self._at)
        if match is None:
            raise NotRegular("look-around, flags and other '(?' groups are not supported")
        self._at = match.end()
        return "(?:"

    def _quantifier(self) -> str:
        match = _QUANTIFIER.match(self._text, self._at)
        if match is None:
            return ""
        self._at = match.end()
        if self._text[self._at : self._at + 1] == "?":
            self._at += 1  # a lazy quantifier matches the same texts
        if _QUANTIFIER.match(self._text, self._at):
            raise NotRegular("a quantifier follows a quantifier")
        return match[0]

    def _atom(self, char: str) -> str:
        if char == "[":
            return self._class()
        if char == "\\":
            return self._escape()
        if char in "*+?":
            raise NotRegular(f"'{char}' repeats nothing")
        self._at += 1
        return f"[^{_LINE_ENDS}]" if char == "." else literal(char)

    def _escape(self) -> str:
        """An escape outside of a class."""
        kind = self._text[self._at + 1 : self._at + 2]
        if kind and kind in "bB123456789k":
            what = "word borders" if kind in "bB" else "back references"
            raise NotRegular(f"{what} are not supported")
        inside = self._class_escape(negated=False)
        if inside.startswith("^"):
            return f"[{inside}]"
        return f"[{inside}]" if kind in "dws" or inside[:2] in (r"\p", r"\P") else inside

    def _class(self) -> str:
        """A bracketed class, as a Rust class without its operators."""
        end = self._at + 1
        negated = self._text[end : end + 1] == "^"
        self._at = end + negated
        items: list[str] = []
        while self._peek() != "]":
            items.append(self._class_item(negated))
        self._at += 1
        if not items:
            if negated:
                return r"[\x00-\u{10FFFF}]"
            raise NotRegular("an empty class matches nothing")
        return f"[{'^' if negated else ''}{''.join(items)}]"

    def _class_item(self, negated: bool) -> str:
        """A character, a set such as ``\\d``, or a range."""
        is_set = _SET.match(self._text, self._at)
        low = self._class_char(negated)
        tail = self._text[self._at :]
        if is_set or not tail.startswith("-") or tail[1:2] in ("]", ""):
            return f"[{low}]" if low.startswith("^") else low
        if _SET.match(tail, 1):
            return low  # the hyphen before a set is a hyphen
        self._at += 1
        return f"{low}-{self._class_char(negated)}"

    def _class_char(self, negated: bool) -> str:
        char = self._peek()
        if char == "\\":
            return self._class_escape(negated)
        self._at += 1
        return literal(char)

    def _class_escape(self, negated: bool) -> str:
        r"""The inside of a class for an escape; begins with ``^`` for a complement.

        ``negated``: the class around it is a complement, so what counts as white space must be
        wide for the result to be narrow.
        """
        self._at += 1
        kind = self._peek()
        if (match := _HEX.match(self._text, self._at)) is not None:
            self._at = match.end()
            return self._code_point(int(match[1] or match[2] or match[3], 16))
        if (match := _PROPERTY.match(self._text, self._at)) is not None:
            self._at = match.end()
            return "\\" + match[0]
        self._at += 1
        if kind in "dDwWsS":
            return _shorthand(kind, negated)
        if kind in _CONTROLS:
            return _CONTROLS[kind]
        if kind == "b":
            return r"\x08"
        if kind == "0" and not self._text[self._at : self._at + 1].isdigit():
            return r"\x00"
        if kind.isalnum() or kind == "_":
            raise NotRegular(f"the escape '\\{kind}' is not supported")
        return literal(kind)

    def _code_point(self, code: int) -> str:
        low = _LOW.match(self._text, self._at)
        if 0xD800 <= code < 0xDC00 and low is not None:
            self._at = low.end()
            code = 0x10000 + ((code - 0xD800) << 10) + (int(low[1], 16) - 0xDC00)
        if 0xD800 <= code < 0xE000 or code > 0x10FFFF:
            raise NotRegular("half a surrogate pair is no character")
        return f"\\u{{{code:X}}}"

    def _peek(self) -> str:
        if self._at >= len(self._text):
            raise NotRegular("the pattern ends in the middle of a class or an escape")
        return self._text[self._at]


def literal(char: str) -> str:
    """One character that stands for itself, inside and outside of classes."""
    return char if char.isalnum() and char.isascii() else f"\\u{{{ord(char):X}}}"


def _shorthand(kind: str, negated: bool) -> str:
    wide = negated == kind.islower()
    sets = {"d": _DIGIT, "w": _WORD, "s": _WIDE_SPACE if wide else _NARROW_SPACE}
    inside = sets[kind.lower()]
    return inside if kind.islower() else f"^{inside}"
