"""Answers from the user's own documents."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hookline_knowledge.plugin import Knowledge
    from hookline_knowledge.settings import KnowledgeSettings

__all__ = ["Knowledge", "KnowledgeSettings"]


def __getattr__(name: str) -> Any:
    # The processes that read files import this package too, and start slowly and large with the
    # whole plugin in them.
    if name == "Knowledge":
        from hookline_knowledge.plugin import Knowledge

        return Knowledge
    if name == "KnowledgeSettings":
        from hookline_knowledge.settings import KnowledgeSettings

        return KnowledgeSettings
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
