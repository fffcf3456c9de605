"""OpenAI's Files and Vector Stores API over the collections."""

from quart import Blueprint

from hookline_knowledge.api import batches, files, members, search, vector_stores
from hookline_knowledge.base import KnowledgeBase


def blueprint(base: KnowledgeBase) -> Blueprint:
    """All routes."""
    routes = Blueprint("knowledge", __name__)
    for part in (files, vector_stores, members, batches, search):
        part.add_routes(routes, base)
    return routes
