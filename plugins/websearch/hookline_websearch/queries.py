"""What a search engine is asked: from a model's words, or from a person's."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

from hookline import in_line
from hookline_websearch.links import LINK

LONGEST = 80
"""Characters of a query; what a model writes beyond that is no query any more."""

MOST_WORDS = 14
LONGEST_WORD = 40
FEW_WORDS = 5
SENTENCE_MAX = 200
"""Characters of a person's message that are searched for as they stand."""

_CODE = re.compile(r"```.*?(?:```|\Z)", re.DOTALL)
_WORD = re.compile(r"\w+")
_SENTENCE = re.compile(r"(?<=[.!?。！？])\s+|\n+")
_PLACEHOLDER = re.compile(
    r"[\W_]*(?:(?:the|a|an|your|my|this|first|second|third|another|short|web|search|google|engine)\s+)*"
    r"(?:quer(?:y|ies)|string|search(?:es)?|question|text|keywords?|example|none|null|true|false"
    r"|empty|n/?a|message|todo|undefined)?[\W\d_]*",
    re.IGNORECASE,
)


def usable(written: Iterable[str], instruction: str, said: str) -> list[str]:
    """The queries that a model wrote; none at all where one of them is nonsense, for then the
    others are no better.

    Nonsense is what `is_query` refuses, what was written twice, and what has its words from the
    ``instruction`` and none from what was ``said`` in the conversation.
    """
    kept: dict[str, str] = {}
    for query in written:
        text = in_line(query).strip("\"'“”‘’`*•–,;: ")
        if _key(text) in kept or not is_query(text) or _copied(text, instruction, said):
            return []
        kept[_key(text)] = text
    return list(kept.values())


def is_query(text: str) -> bool:
    """Whether a text could be what somebody types into a search engine."""
    words = _words(text)
    if not words or len(text) > LONGEST or len(words) > MOST_WORDS:
        return False
    if _PLACEHOLDER.fullmatch(text) or LINK.search(text) or max(map(len, words)) > LONGEST_WORD:
        return False
    most_said = max(Counter(words).values())
    return most_said <= 2 and (len(words) < 4 or len(set(words)) > len(words) / 2)


def of_message(text: str) -> str:
    """A person's message as a query: without code and addresses; of a long one its last question,
    or its first sentence, cut at a word."""
    plain = LINK.sub(" ", _CODE.sub(" ", text))
    said = plain if in_line(plain) else text
    line = in_line(said)
    if len(line) <= SENTENCE_MAX:
        return line
    sentences = [part for part in map(in_line, _SENTENCE.split(said)) if part]
    questions = [part for part in sentences if part.endswith(("?", "？"))]
    chosen = (questions or sentences)[-1 if questions else 0]
    if len(chosen) <= SENTENCE_MAX:
        return chosen
    cut = chosen[:SENTENCE_MAX]
    return cut.rpartition(" ")[0] or cut


def is_about_links(text: str) -> bool:
    """Whether a message has links, and besides them only a few words: "What does … say?"."""
    rest = LINK.sub(" ", text)
    return rest != text and len(_words(rest)) <= FEW_WORDS


def cover(queries: Iterable[str], question: str) -> bool:
    """Whether the queries have at least half of a question's longer words and numbers."""
    asked = {word for word in _words(question) if _is_telling(word)}
    said = {word for query in queries for word in _words(query)}
    return 2 * len(asked & said) >= len(asked)


def _copied(text: str, instruction: str, said: str) -> bool:
    words = set(_words(text))
    telling = {word for word in words if _is_telling(word)}
    return words <= set(_words(instruction)) and not telling & set(_words(said))


def _words(text: str) -> list[str]:
    return [word.lower() for word in _WORD.findall(text)]


def _is_telling(word: str) -> bool:
    """Whether a word is no short one such as ``is`` and ``the``; numbers and Chinese count."""
    return len(word) > 3 or not (word.isascii() and word.isalpha())


def _key(text: str) -> str:
    return " ".join(_words(text))
