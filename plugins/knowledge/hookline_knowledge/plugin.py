"""The plugin: embedders, collections of documents, and answers from them."""

from __future__ import annotations

from hookline_knowledge.settings import KnowledgeSettings

NAME = "knowledge"


class Knowledge:
    """Answers from the user's own documents."""

    settings_model = KnowledgeSettings

    def __init__(self, settings: KnowledgeSettings) -> None:
        self._settings = settings
