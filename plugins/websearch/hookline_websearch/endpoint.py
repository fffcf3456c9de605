"""``POST /v1/web_search``: sources without an answer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

from pydantic import BaseModel, Field
from quart import Blueprint, Response

from hookline import InvalidRequest
from hookline.routes import describe, json_response, read_json, validate
from hookline_websearch.answering import Answering
from hookline_websearch.asking import Asked, asked_for, depth_of
from hookline_websearch.provider import TimeRange
from hookline_websearch.settings import DepthValue, WebSearchSettings
from hookline_websearch.telling import source_body, summary

LONGEST_QUERY = 2000


class SearchRequest(BaseModel):
    """What to look for."""

    query: str = Field(max_length=LONGEST_QUERY, description="What to look for.")
    depth: DepthValue = Field(
        None, description="quick, balanced or deep; left out or true: the configured one."
    )
    language: str | None = Field(
        None,
        pattern=r"^(auto|all|[a-z]{2,3}(-[A-Za-z]{2,4})?)$",
        description="Language of results, such as 'de'.",
    )
    time_range: TimeRange | None = Field(
        None, description="Only pages of the last day, month or year, where engines know that."
    )


class WebSource(BaseModel):
    """A page that was found; ``text`` are the passages that say most about the query."""

    index: int
    type: Literal["web"]
    title: str
    url: str
    site: str
    snippet: str
    text: str


class SearchSummary(BaseModel):
    """How the search went."""

    searched: bool
    depth: str
    queries: list[str]
    pages_read: int
    seconds: float
    note: str | None


class SearchResult(BaseModel):
    """Sources, best first."""

    object: Literal["web_search"]
    sources: list[WebSource]
    web_search: SearchSummary


def blueprint(settings: WebSearchSettings, answering: Callable[[], Answering]) -> Blueprint:
    """The route; ``answering`` is there once the server runs."""
    routes = Blueprint("web_search", __name__)

    @routes.post("/v1/web_search")
    @describe(request=SearchRequest, response=SearchResult)
    async def web_search() -> Response:
        """Searches the web and reads what it finds, without an answer."""
        wanted = validate(SearchRequest, await read_json())
        asked = read(wanted, settings)
        outcome = await answering().sources(asked, wanted.language, wanted.time_range)
        sources = [
            {"index": index, **source_body(source), "text": source.text}
            for index, source in enumerate(outcome.sources, 1)
        ]
        body: dict[str, Any] = {"object": "web_search", "sources": sources}
        return json_response(body | {"web_search": summary(asked, outcome)})

    return routes


def read(wanted: SearchRequest, settings: WebSearchSettings) -> Asked:
    """A search as a chat would ask for it. Raises InvalidRequest."""
    depth = depth_of(True if wanted.depth is None else wanted.depth, settings, "depth", off="")
    if not wanted.query.strip():
        raise InvalidRequest("'query': must not be empty.", param="query")
    return asked_for(wanted.query, depth, settings)
