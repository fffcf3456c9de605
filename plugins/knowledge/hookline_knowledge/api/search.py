"""``/v1/vector_stores/…/search``: passages without an answer."""

from __future__ import annotations

from typing import Any

from quart import Blueprint, Response

from hookline import Message
from hookline.routes import describe, json_response, read_json, validate
from hookline_knowledge.api.answers import SearchResults
from hookline_knowledge.api.requests import SearchVectorStore
from hookline_knowledge.base import KnowledgeBase
from hookline_knowledge.chat.rewriting import rewritten
from hookline_knowledge.search import Passage


def add_routes(routes: Blueprint, base: KnowledgeBase) -> None:
    """Adds the route."""

    @routes.post("/v1/vector_stores/<vector_store_id>/search")
    @describe(request=SearchVectorStore, response=SearchResults)
    async def search_vector_store(vector_store_id: str) -> Response:
        """Searches a collection; best first. Several queries give one list."""
        asked = validate(SearchVectorStore, await read_json())
        collection = await base.library.open_collection(vector_store_id)
        queries = asked.queries
        if asked.rewrite_query:
            queries = [
                await rewritten(base.server, [Message(role="user", content=q)]) for q in queries
            ]
        found = await base.searcher.search(
            [collection],
            queries,
            limit=asked.max_num_results,
            floor=asked.ranking_options.score_threshold,
            filters=asked.filters,
        )
        return json_response(
            {
                "object": "vector_store.search_results.page",
                "search_query": queries,
                "data": [_result(passage) for passage in found],
                "has_more": False,
                "next_page": None,
            }
        )


def _result(passage: Passage) -> dict[str, Any]:
    return {
        "file_id": passage.file,
        "filename": passage.document,
        "score": round(passage.similarity, 6),
        "attributes": passage.member.attributes,
        "content": [{"type": "text", "text": passage.text, "location": passage.location}],
    }
