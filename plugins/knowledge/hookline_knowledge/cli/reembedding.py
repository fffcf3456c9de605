"""Embeds documents anew, with another embedding model."""

from __future__ import annotations

from hookline import ApiError
from hookline_knowledge.base import KnowledgeBase
from hookline_knowledge.catalog import collections, files, members
from hookline_knowledge.cli.adding import Summary, progress
from hookline_knowledge.intake import embedded
from hookline_knowledge.parsing import Unreadable
from hookline_knowledge.pictures.gallery import Gallery


async def reembed_all(base: KnowledgeBase, name: str | None, *, quiet: bool) -> Summary:
    """Moves all documents of one collection, or of all, to the embedder of the settings.

    What was done is kept when it is broken off; the next run goes on from there.
    """
    library, embedder = base.library, await base.embedder()
    chosen = (
        [await library.open_collection(name, "collection")]
        if name
        else await library.catalog.read(collections.all_open)
    )
    numbers = [collection.number for collection in chosen]
    summary = Summary(", ".join(each.name or each.short_id for each in chosen))
    old = await base.store.outdated(embedder.name, numbers)
    with progress(quiet) as bar:
        task = bar.add_task(f"Embedding with {embedder.name}", total=len(old))
        for seq in old:
            named = await _name(base, seq)
            try:
                texts = [chunk.text for chunk in await base.store.chunks(seq)]
                await base.store.reembed(embedder.name, seq, await embedded(embedder, texts))
                summary.added.append(named)
            except ApiError as error:
                summary.failed[named] = error.message
            bar.advance(task)
    if base.gallery is not None:
        await _look_again(base, base.gallery, numbers, summary)
    return summary


async def _look_again(
    base: KnowledgeBase, gallery: Gallery, numbers: list[int], summary: Summary
) -> None:
    """The same for pictures, whose bytes are looked at again."""
    old = await gallery.store.outdated(await gallery.model(), numbers)
    for seq, member in (await base.library.catalog.read(members.visible, old)).items():
        file = await base.library.file(member.file)
        try:
            await gallery.reembed(seq, base.library.blobs.path(file.hash))
            summary.added.append(file.name)
        except (ApiError, Unreadable) as error:
            summary.failed[file.name] = str(error)


async def _name(base: KnowledgeBase, seq: int) -> str:
    """What people call a document."""
    found = await base.library.catalog.read(members.visible, [seq])
    ids = {member.file for member in found.values()}
    named = await base.library.catalog.read(files.named, ids)
    return next((file.name for file in named.values()), f"document {seq}")
