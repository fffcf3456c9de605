"""Asking a provider's JSON interface over HTTP."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import httpx

from hookline_websearch.provider import ProviderError

UNREACHED = 0
"""Stands for a status in hints: nobody is there who could answer with one."""


def shown(url: str) -> str:
    """An address without the name and password that it may hold."""
    parts = urlsplit(url)
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))


async def get_json(
    client: httpx.AsyncClient,
    who: str,
    url: str,
    parameters: Mapping[str, Any],
    seconds: float,
    hints: Mapping[int, str] | None = None,
) -> dict[str, Any]:
    """The JSON object at an address. Raises ProviderError that says what was wrong with ``who``.

    ``hints`` are what to say for a status, or `UNREACHED`.
    """
    hints = hints or {}
    try:
        response = await client.get(url, params=parameters, timeout=seconds)
    except httpx.TimeoutException as error:
        raise ProviderError(f"{who} did not answer within {seconds:.1f} seconds.") from error
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        reason = str(error) or type(error).__name__
        told = f"{who} cannot be reached at {shown(url)}: {reason}. {hints.get(UNREACHED, '')}"
        raise ProviderError(told.rstrip()) from error
    if response.status_code != 200:
        raise ProviderError(_refused(who, response, hints))
    try:
        body = response.json()
    except ValueError as error:
        raise ProviderError(f"What answers at {shown(url)} is not {who}: no JSON.") from error
    if not isinstance(body, dict):
        raise ProviderError(f"What answers at {shown(url)} is not {who}: no JSON object.")
    return body


def _refused(who: str, response: httpx.Response, hints: Mapping[int, str]) -> str:
    status = response.status_code
    if status in hints:
        return f"{who} refused the request ({status}): {hints[status]}"
    if response.is_redirect:
        target = response.headers.get("Location", "")
        return f"{who} redirects to {shown(target)[:200]}; set that address instead."
    return f"{who} answered with status {status}."
