"""Reading bodies and writing JSON."""

from __future__ import annotations

from typing import Any

import pydantic_core
from quart import Response, request

from hookline.api.schema import parse_json


async def read_json() -> dict[str, Any]:
    """The request's body as a JSON object. Raises InvalidJson."""
    data = await request.get_data(cache=False)
    return parse_json(data if isinstance(data, bytes) else data.encode())


def json_response(body: Any, status: int = 200) -> Response:
    """A body as a JSON response."""
    return Response(pydantic_core.to_json(body), status, content_type="application/json")
