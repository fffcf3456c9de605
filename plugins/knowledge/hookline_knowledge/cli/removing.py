"""Removes documents, or a whole collection."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from hookline_knowledge.base import KnowledgeBase
from hookline_knowledge.catalog import StoredFile, files, members


async def remove_documents(
    base: KnowledgeBase, name: str, documents: Sequence[str]
) -> dict[str, Any]:
    """Removes documents by id, name or path; without any, the whole collection.

    Files that no other collection holds are removed with them. Raises ClickException for a document
    that is not there, and then removes nothing.
    """
    library = base.library
    collection = await library.collection(name, "collection")
    held = await library.catalog.read(members.of_collection, collection.number)
    named = await library.catalog.read(files.named, {member.file for member in held})
    chosen = _chosen(named, documents, collection.name) if documents else named
    if not documents:
        await library.remove_collection(collection)
    for file in chosen.values():
        if documents:
            await library.remove_member(collection, file.id)
        if not await library.catalog.read(members.is_held, file.id):
            await library.remove_file(file.id)
    removed = sorted(file.name for file in chosen.values())
    return {"collection": collection.name, "id": collection.short_id, "removed": removed}


def _chosen(
    named: dict[str, StoredFile], documents: Sequence[str], collection: str
) -> dict[str, StoredFile]:
    chosen: dict[str, StoredFile] = {}
    for document in documents:
        wanted = {document, str(Path(document).absolute())}
        found = {
            id: file for id, file in named.items() if wanted & {id, file.name, file.origin or ""}
        }
        if not found:
            raise click.ClickException(f"There is no document '{document}' in '{collection}'.")
        chosen |= found
    return chosen
