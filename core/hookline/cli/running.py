"""What the server that runs says about its plugins: it knows what only shows at work."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import Any
from urllib.parse import urlsplit

import click

from hookline.config import Settings
from hookline.errors import StartError

PATIENCE = 1.0
"""Seconds to wait for an answer."""


@dataclass(frozen=True, slots=True)
class Running:
    """The server at ``url``, and its plugins by name, each as in ``/health``.

    One that does not ``answer`` was reached, and said nothing in time.
    """

    url: str
    plugins: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    answers: bool = True


def url_option(command: click.decorators.FC) -> click.decorators.FC:
    """``--url`` of the commands that ask a server."""
    help = "The server to ask, such as http://localhost:8001; default: that of the configuration."
    return click.option("--url", metavar="URL", help=help)(command)


def asked_server(settings: Settings, url: str | None) -> Running | None:
    """The server at ``url``, which must answer, or else that of these settings; None where there is
    none. Raises StartError."""
    if url is None:
        return running_server(settings)
    running = _asked(url)
    if running is None or not running.answers:
        raise StartError(
            f"No server of Hookline answers at {url}; a server's URL is like http://localhost:1234"
        )
    return running


def running_server(settings: Settings) -> Running | None:
    """The server of these settings; None where there is none."""
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(settings.server.host, settings.server.host)  # noqa: S104
    name = f"[{host}]" if ":" in host else host
    return _asked(f"http://{name}:{settings.server.port}")


def _asked(url: str) -> Running | None:
    """What a server says; its ``url`` may end with ``/v1``, as clients have it."""
    base = url.rstrip("/").removesuffix("/v1")
    try:
        with closing(_connection(base)) as connection:
            connection.request("GET", urlsplit(base).path + "/health")
            body = json.loads(connection.getresponse().read())
        return Running(base, {plugin["name"]: plugin for plugin in body["plugins"]})
    except TimeoutError:
        return Running(base, answers=False)
    except (OSError, HTTPException, ValueError, LookupError, TypeError):
        return None  # nobody, or another kind of server


def _connection(url: str) -> HTTPConnection:
    """A connection to where a URL is. Raises ValueError for one that is none of HTTP's."""
    parts = urlsplit(url)
    kinds: dict[str, type[HTTPConnection]] = {"http": HTTPConnection, "https": HTTPSConnection}
    if parts.scheme not in kinds or not parts.hostname:
        raise ValueError(url)
    return kinds[parts.scheme](parts.hostname, parts.port, timeout=PATIENCE)
