"""What models were trained to be told before a query and before a passage."""

from __future__ import annotations

import re
import zlib
from dataclasses import dataclass, replace

from hookline_knowledge.settings import KnowledgeSettings

_SEARCH = "Represent this sentence for searching relevant passages: "


@dataclass(frozen=True, slots=True)
class Profile:
    """Texts to write before queries and passages."""

    query: str = ""
    document: str = ""

    def prefix(self, kind: str) -> str:
        """What comes before a text of that kind."""
        return self.query if kind == "query" else self.document


KNOWN = (
    (
        r"qwen3-embedding",
        Profile(query="Instruct: Given a question, retrieve passages that answer it\nQuery:"),
    ),
    (
        r"e5-.*instruct",
        Profile(query="Instruct: Given a question, retrieve passages that answer it\nQuery: "),
    ),
    (r"\be5-", Profile("query: ", "passage: ")),
    (r"nomic-embed-text", Profile("search_query: ", "search_document: ")),
    (r"embeddinggemma", Profile("task: search result | query: ", "title: none | text: ")),
    (r"arctic-embed.*v2", Profile("query: ")),
    (r"arctic-embed|mxbai-embed|bge-(small|base|large)-en", Profile(_SEARCH)),
)
"""By what is in a model's name, as the cards of these models say. The first that fits counts."""


def profile_of(model: str, settings: KnowledgeSettings) -> Profile:
    """The prefixes of a model: those of the settings, else those it was trained with."""
    name = model.lower().replace("_", "-")
    known = next((profile for pattern, profile in KNOWN if re.search(pattern, name)), Profile())
    if settings.query_prefix is not None:
        known = replace(known, query=settings.query_prefix)
    if settings.document_prefix is not None:
        known = replace(known, document=settings.document_prefix)
    return known


def name_of(model: str, settings: KnowledgeSettings) -> str:
    """What tells a model's vectors of passages from others, also from those with another prefix."""
    if settings.document_prefix is None:
        return model
    return f"{model}+{zlib.crc32(settings.document_prefix.encode()):08x}"
