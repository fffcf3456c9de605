"""Answers from the user's own documents."""

from hookline_knowledge.plugin import Knowledge
from hookline_knowledge.settings import KnowledgeSettings

__all__ = ["Knowledge", "KnowledgeSettings"]
