"""Chunks of documents with their vectors, kept in LanceDB and found again."""

from hookline_knowledge.store.records import Hit, Query
from hookline_knowledge.store.store import Store

__all__ = ["Hit", "Query", "Store"]
