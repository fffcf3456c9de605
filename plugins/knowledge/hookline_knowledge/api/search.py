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


class SearchRoutes:
    """Searches without an answer."""

    def __init__(self, base: KnowledgeBase) -> None:
        self._base = base
        self._library = base.library

    @describe(request=SearchVectorStore, response=SearchResults)
    async def search_vector_store(self, vector_store_id: str) -> Response:
        """Searches a collection; best first. Several queries give one list."""
        asked = validate(SearchVectorStore, await read_json())
        collection = await self._library.open_collection(vector_store_id)
        queries = asked.queries
        if asked.rewrite_query:
            queries = [
                await rewritten(self._base.server, [Message(role="user", content=q)])
                for q in queries
            ]
        least = asked.ranking_options.score_threshold
        found = await self._base.searcher.search(
            [collection],
            queries,
            limit=asked.max_num_results,
            floor=0.0,
            filters=asked.filters,
        )
        return json_response(
            {
                "object": "vector_store.search_results.page",
                "search_query": queries,
                "data": [_result(each) for each in found if each.score >= least],
                "has_more": False,
                "next_page": None,
            }
        )


def add_routes(routes: Blueprint, base: KnowledgeBase) -> None:
    """Adds the routes."""
    here = SearchRoutes(base)
    routes.post("/v1/vector_stores/<path:vector_store_id>/search")(here.search_vector_store)


def _result(passage: Passage) -> dict[str, Any]:
    return {
        "file_id": passage.file,
        "filename": passage.document,
        "score": round(passage.score, 6),
        "similarity": round(passage.similarity, 6),
        "attributes": passage.member.attributes,
        "content": [{"type": "text", "text": passage.text, "location": passage.location}],
    }
