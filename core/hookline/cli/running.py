"""What the server that runs says about its plugins: it knows what only shows at work."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPException
from typing import Any

from hookline.config import Settings

PATIENCE = 1.0
"""Seconds to wait for an answer; the server is on this machine, or it is not asked."""


@dataclass(frozen=True, slots=True)
class Running:
    """The server at ``url``, and its plugins by name, each as in ``/health``.

    One that does not ``answer`` was reached, and said nothing in time.
    """

    url: str
    plugins: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    answers: bool = True


def running_server(settings: Settings) -> Running | None:
    """The server of these settings; None where there is none."""
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(settings.server.host, settings.server.host)  # noqa: S104
    name = f"[{host}]" if ":" in host else host
    url = f"http://{name}:{settings.server.port}"
    connection = HTTPConnection(host, settings.server.port, timeout=PATIENCE)
    try:
        connection.request("GET", "/health")
        body = json.loads(connection.getresponse().read())
        plugins = {plugin["name"]: plugin for plugin in body["plugins"]}
    except TimeoutError:
        return Running(url, answers=False)
    except (OSError, HTTPException, ValueError, LookupError, TypeError):
        return None  # nobody, or another kind of server
    finally:
        connection.close()
    return Running(url, plugins)
