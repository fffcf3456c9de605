"""What clients are told when something about collections does not work."""

from __future__ import annotations

from hookline import InvalidRequest, NotFound, Unavailable


class CollectionNotFound(NotFound):
    """No such collection, or none any more."""

    code = "collection_not_found"


class KnowledgeUnavailable(Unavailable):
    """Nothing can be searched or added: the embedding model is missing or has failed."""

    code = "knowledge_unavailable"


def no_collection(name: str, param: str | None = None) -> CollectionNotFound:
    """There is no collection of that id or name."""
    return CollectionNotFound(
        f"There is no collection '{name[:100]}'. GET /v1/vector_stores lists all.", param=param
    )


def ambiguous(name: str, ids: list[str], param: str | None = None) -> InvalidRequest:
    """Several collections have that name."""
    return InvalidRequest(
        f"{len(ids)} collections have the name '{name[:100]}'; use an id instead: "
        f"{', '.join(ids[:10])}.",
        param=param,
        code="invalid_knowledge" if param == "knowledge" else None,
    )


def no_file(id: str, param: str | None = "file_id") -> NotFound:
    """There is no file of that id."""
    return NotFound(f"There is no file '{id[:100]}'. GET /v1/files lists all.", param=param)


def no_member(file: str, collection: str) -> NotFound:
    """The collection has no such file."""
    return NotFound(f"There is no file '{file[:100]}' in '{collection}'.", param="file_id")


def no_batch(id: str, collection: str) -> NotFound:
    """The collection has no such batch."""
    return NotFound(f"There is no batch '{id[:100]}' in '{collection}'.", param="batch_id")
