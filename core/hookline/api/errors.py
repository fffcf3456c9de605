"""Every failure as OpenAI's error body, whoever raised it."""

from __future__ import annotations

import logging

import pydantic_core
from quart import Quart, Response, request
from werkzeug.exceptions import (
    HTTPException,
    MethodNotAllowed,
    RequestEntityTooLarge,
    RequestTimeout,
)
from werkzeug.exceptions import NotFound as NoRoute

from hookline.errors import ApiError, InvalidRequest, NotFound, RequestTooLarge

log = logging.getLogger(__name__)

ASKED_MAX = 120
"""Characters of method and path in an error; they are the client's own text."""


def install(app: Quart) -> None:
    """Registers the handlers."""
    app.register_error_handler(ApiError, answer)
    app.register_error_handler(HTTPException, _from_http)
    app.register_error_handler(Exception, unexpected)


def answer(error: ApiError, status: int | None = None) -> Response:
    """An error as a response."""
    response = Response(
        pydantic_core.to_json(error.body(), inf_nan_mode="null"),
        status or error.status,
        content_type="application/json",
    )
    response.headers.update(error.headers)
    return response


def _from_http(error: HTTPException) -> Response:
    """Werkzeug's exceptions, which would be HTML."""
    if isinstance(error, NoRoute):
        asked = f"{request.method} {request.path}"[:ASKED_MAX]
        return answer(NotFound(f"There is no {asked} here. See /docs."))
    if isinstance(error, RequestEntityTooLarge):
        return answer(RequestTooLarge("The body is over the limit ([server] max_body_mb)."))
    if isinstance(error, RequestTimeout):
        problem = InvalidRequest("The body did not arrive in time.", code="request_timeout")
        return answer(problem, 408)
    problem = InvalidRequest(
        f"{error.name}: {error.description}", code=error.name.lower().replace(" ", "_")
    )
    response = answer(problem, error.code)
    if isinstance(error, MethodNotAllowed) and error.valid_methods:
        response.headers["Allow"] = ", ".join(sorted(error.valid_methods))
    return response


def unexpected(error: Exception) -> Response:
    """What nobody foresaw: it is logged, and the client learns no more than that."""
    log.error("a request failed", exc_info=error)
    return answer(ApiError("The server failed. Its log has the details.", code="internal_error"))
