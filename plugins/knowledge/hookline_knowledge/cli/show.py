"""What the commands print."""

from __future__ import annotations

import sys
from dataclasses import asdict
from datetime import datetime
from typing import Any

import click

from hookline.commands import human_size, note, print_json
from hookline_knowledge.base import KnowledgeBase
from hookline_knowledge.catalog import collections, files, members
from hookline_knowledge.cli.adding import Summary

COLLECTIONS = ("id", "name", "documents", "failed", "in progress", "size", "last used")
DOCUMENTS = ("id", "name", "status", "size", "added", "problem")


async def collections_of(base: KnowledgeBase) -> list[dict[str, Any]]:
    """One row a collection."""
    catalog = base.library.catalog
    await base.library.expire()
    every = await catalog.read(collections.all_open)
    counts = await catalog.read(collections.counts, [each.number for each in every])
    return [
        {
            "id": each.short_id,
            "vector_store": each.id,
            "name": each.name,
            "documents": counts[each.number].completed,
            "failed": counts[each.number].failed,
            "in_progress": counts[each.number].in_progress,
            "size": human_size(counts[each.number].usage_bytes),
            "last_used": _moment(each.active),
        }
        for each in every
    ]


async def documents_of(base: KnowledgeBase, name: str) -> list[dict[str, Any]]:
    """One row a document of a collection."""
    catalog = base.library.catalog
    collection = await base.library.open_collection(name, "collection")
    held = await catalog.read(members.of_collection, collection.number)
    named = await catalog.read(files.named, {member.file for member in held})
    return [
        {
            "id": member.file,
            "name": named[member.file].name,
            "path": named[member.file].origin,
            "status": member.status,
            "size": human_size(named[member.file].bytes),
            "added": _moment(member.created),
            "problem": member.error_message,
        }
        for member in held
    ]


async def passages_of(
    base: KnowledgeBase, query: str, name: str | None, limit: int
) -> list[dict[str, Any]]:
    """What a search finds."""
    among = (
        [await base.library.open_collection(name, "collection")]
        if name
        else await base.library.catalog.read(collections.all_open)
    )
    found = await base.searcher.search(among, [query], limit=limit, floor=0.0)
    return [
        {
            "document": passage.document,
            "document_id": passage.file,
            "location": passage.location,
            "similarity": round(passage.similarity, 4),
            "score": round(passage.score, 4),
            "text": passage.text,
        }
        for passage in found
    ]


def passages(found: list[dict[str, Any]]) -> None:
    """Passages for people."""
    if not found:
        note("Nothing was found.")
    for passage in found:
        place = ", ".join(filter(None, (passage["document"], passage["location"])))
        click.secho(f"{place}  ({passage['similarity']:.2f})", bold=sys.stdout.isatty())
        click.echo(f"{passage['text'].strip()}\n")


def summary(of: Summary, as_json: bool) -> None:
    """What became of files."""
    if as_json:
        print_json(asdict(of))
        return
    counted = {
        "added": len(of.added),
        "unchanged": len(of.unchanged),
        "removed": len(of.removed),
        "failed": len(of.failed),
    }
    said = [f"{number} {what}" for what, number in counted.items() if number]
    click.echo(f"{of.collection}: {', '.join(said) or 'nothing to do'}")
    for path, reason in of.failed.items():
        click.secho(f"  {path}: {reason}", fg="red", err=True)
    for path, missing in of.notes.items():
        click.secho(f"  {path}: {missing}", fg="yellow", err=True)


def _moment(seconds: int) -> str:
    return f"{datetime.fromtimestamp(seconds).astimezone():%Y-%m-%d %H:%M}"
