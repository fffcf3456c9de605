"""What clients of the Files and Vector Stores API get."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hookline_knowledge.catalog import Batch, Collection, Counts, Member, Page, StoredFile


def file_body(file: StoredFile) -> dict[str, Any]:
    """OpenAI's ``file`` object."""
    return {
        "id": file.id,
        "object": "file",
        "bytes": file.bytes,
        "created_at": file.created,
        "expires_at": file.expires,
        "filename": file.name,
        "purpose": file.purpose,
        "status": "processed",
        "status_details": None,
    }


def store_body(collection: Collection, counts: Counts) -> dict[str, Any]:
    """OpenAI's ``vector_store`` object; ``collection`` is the short id."""
    status = "in_progress" if counts.in_progress else "completed"
    days = collection.expires_days
    return {
        "id": collection.id,
        "object": "vector_store",
        "created_at": collection.created,
        "name": collection.name,
        "description": collection.description,
        "usage_bytes": counts.usage_bytes,
        "file_counts": counts_body(counts),
        "status": "expired" if collection.state == "expired" else status,
        "expires_after": None if days is None else {"anchor": "last_active_at", "days": days},
        "expires_at": collection.expires,
        "last_active_at": collection.active,
        "metadata": collection.metadata,
        "collection": collection.short_id,
    }


def counts_body(counts: Counts) -> dict[str, int]:
    """OpenAI's ``file_counts`` object."""
    return {
        "in_progress": counts.in_progress,
        "completed": counts.completed,
        "failed": counts.failed,
        "cancelled": counts.cancelled,
        "total": counts.total,
    }


def member_body(member: Member, collection: Collection) -> dict[str, Any]:
    """OpenAI's ``vector_store.file`` object."""
    failed = member.status == "failed"
    return {
        "id": member.file,
        "object": "vector_store.file",
        "created_at": member.created,
        "vector_store_id": collection.id,
        "usage_bytes": member.usage_bytes,
        "status": member.status,
        "last_error": {"code": member.error_code, "message": member.error_message}
        if failed
        else None,
        "notes": None if failed else member.error_message,
        "attributes": member.attributes,
        "chunking_strategy": {
            "type": "static",
            "static": {
                "max_chunk_size_tokens": member.chunking.tokens,
                "chunk_overlap_tokens": member.chunking.overlap,
            },
        },
    }


def batch_body(batch: Batch, collection: Collection, counts: Counts) -> dict[str, Any]:
    """OpenAI's ``vector_store.files_batch`` object."""
    if counts.in_progress:
        status = "in_progress"
    elif batch.cancelled:
        status = "cancelled"
    else:
        status = "failed" if counts.failed and counts.failed == counts.total else "completed"
    return {
        "id": batch.id,
        "object": "vector_store.files_batch",
        "created_at": batch.created,
        "vector_store_id": collection.id,
        "status": status,
        "file_counts": counts_body(counts),
    }


def deleted_body(id: str, kind: str) -> dict[str, Any]:
    """OpenAI's answer to a deletion."""
    return {"id": id, "object": kind, "deleted": True}


def page_body(page: Page[Any], data: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """OpenAI's ``list`` object."""
    return {
        "object": "list",
        "data": data,
        "first_id": data[0]["id"] if data else None,
        "last_id": data[-1]["id"] if data else None,
        "has_more": page.has_more,
    }
