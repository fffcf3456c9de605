"""What is there besides text and vectors: files, collections, which file is in which, and how far.

Functions of an open connection, to be run by `Database.read` and `Database.write`.
"""

from hookline_knowledge.catalog import batches, collections, files, members
from hookline_knowledge.catalog.database import Database
from hookline_knowledge.catalog.pages import Cursor, Page
from hookline_knowledge.catalog.records import (
    Attributes,
    Batch,
    Chunking,
    Collection,
    Counts,
    Member,
    StoredFile,
)

__all__ = [
    "Attributes",
    "Batch",
    "Chunking",
    "Collection",
    "Counts",
    "Cursor",
    "Database",
    "Member",
    "Page",
    "StoredFile",
    "batches",
    "collections",
    "files",
    "members",
]
