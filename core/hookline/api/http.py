"""Reading bodies and writing JSON."""

from __future__ import annotations

from typing import Any

import pydantic_core
from quart import Response, request

from hookline.api.validation import parse_json
from hookline.errors import UnsupportedMedia


async def read_json() -> dict[str, Any]:
    """The request's body as a JSON object. Raises InvalidJson and UnsupportedMedia."""
    coding = request.headers.get("Content-Encoding", "identity")
    if coding.lower() != "identity":
        raise UnsupportedMedia(f"The body is encoded ({coding[:40]}). Send it as plain JSON.")
    data = await request.get_data(cache=False)
    return parse_json(data if isinstance(data, bytes) else data.encode())


def json_response(body: Any, status: int = 200) -> Response:
    """A body as a JSON response."""
    return Response(pydantic_core.to_json(body), status, content_type="application/json")
