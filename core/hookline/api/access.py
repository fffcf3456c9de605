"""The guards before every route: web pages of others, API keys, kinds of bodies.

In this order, for core's and plugins' routes and web sockets alike:

1. ``Host`` must be ours, so that a page whose name was pointed at this machine (DNS rebinding)
   gets nothing. See `ours`.
2. ``Origin``, where there is one, must be ours or listed in ``[cors] allow_origins``.
3. A CORS preflight that comes so far is answered; it never needs a key.
4. The caller is asked for, except on routes marked `open_route` or `docs_route`. Unknown paths and
   wrong methods ask too: without a key nobody learns which routes there are.
5. A body must be ``application/json``, or what its route `accepts`. Browsers may send other kinds
   to any server without asking it first.

CORS headers are added last, to errors too.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Awaitable, Callable, Mapping
from datetime import timedelta
from typing import Any, TypeAlias, TypeVar

from quart import Quart, Request, Websocket, g, request, websocket
from quart_cors import cors

from hookline.api.request_log import note_of_request
from hookline.auth import is_loopback, key_required
from hookline.config import Settings
from hookline.errors import ConfigError, Forbidden, UnsupportedMedia
from hookline.exchange import Caller

Authenticate: TypeAlias = Callable[[Mapping[str, str], str], Awaitable[Caller]]
View = TypeVar("View", bound=Callable[..., Any])

EXPOSED_HEADERS = (
    "X-Web-Sources",
    "X-Knowledge-Sources",
    "x-ratelimit-limit-requests",
    "x-ratelimit-remaining-requests",
    "x-ratelimit-reset-requests",
    "Retry-After",
)
"""Headers that a page of an allowed origin may read."""

JSON = "application/json"
PRIVATE_SUFFIXES = (".localhost", ".local", ".internal", ".home.arpa")
"""Domains that public DNS never answers for."""

_OPEN = "hookline_open"
_ACCEPTS = "hookline_accepts"
_HOST = re.compile(r"(?P<name>\[[^\[\]]+\]|[^\[\]:/@\s]+)(:(?P<port>[0-9]*))?")
_ORIGIN = re.compile(r"\*|null|[a-z][a-z0-9+.-]*://[^/?#@\s]*", re.IGNORECASE)


def open_route(view: View) -> View:
    """Marks a view that never asks for a key. Goes below the route's decorator."""
    setattr(view, _OPEN, "always")
    return view


def docs_route(view: View) -> View:
    """Marks a view that asks for a key unless ``[server] docs_need_key = false``."""
    setattr(view, _OPEN, "docs")
    return view


def is_open(view: Callable[..., Any], settings: Settings) -> bool:
    """Whether a view asks for no key."""
    mark = getattr(view, _OPEN, None)
    return mark == "always" or (mark == "docs" and not settings.server.docs_need_key)


def accepts(*media_types: str) -> Callable[[View], View]:
    """Marks a view whose body may be of these kinds besides ``application/json``."""

    def mark(view: View) -> View:
        setattr(view, _ACCEPTS, frozenset(media_types))
        return view

    return mark


def install(app: Quart, settings: Settings, authenticate: Authenticate) -> None:
    """Puts the guards before all routes of ``app``; the caller is then in ``quart.g.caller``.

    ``authenticate`` gets the headers with lower-case names and the peer's address. Raises
    ConfigError when ``[cors] allow_origins`` holds something that is no origin.
    """
    guards = _Guards(app, settings, authenticate)
    app.before_request(guards.check_request)
    app.before_websocket(guards.check_websocket)
    if settings.cors.allow_origins:
        cors(
            app,
            allow_origin=guards.origins,
            expose_headers=EXPOSED_HEADERS,
            max_age=timedelta(minutes=10),
        )
        # quart-cors also refuses web sockets without an Origin, as programs open them.
        # check_websocket knows better.
        app.before_websocket_funcs[None].pop()


class _Guards:
    def __init__(self, app: Quart, settings: Settings, authenticate: Authenticate) -> None:
        self.origins = [_origin(text) for text in settings.cors.allow_origins]
        self._app = app
        self._settings = settings
        self._authenticate = authenticate

    async def check_request(self) -> tuple[str, int] | None:
        self._check_host(request)
        self._check_origin(request)
        if _is_preflight(request):
            g.caller = Caller()
            return "", 204
        await self._check_key(request)
        note_of_request().caller = g.caller.name
        self._check_body(request)
        return None

    async def check_websocket(self) -> None:
        self._check_host(websocket)
        self._check_origin(websocket)
        await self._check_key(websocket)

    def _check_host(self, asked: Request | Websocket) -> None:
        host = asked.headers.get("Host")
        # Only HTTP/1.0 leaves it out (Quart makes that ""), and no browser does.
        if not host or ours(host, self._settings):
            return
        raise Forbidden(
            "This server does not answer to the name in the Host header. Use its address instead, "
            "also where a proxy passes requests on."
        )

    def _check_origin(self, asked: Request | Websocket) -> None:
        origin = asked.headers.get("Origin")
        if origin is None or "*" in self.origins or origin.lower() in self.origins:
            return
        if _same_site(origin, asked.headers.get("Host", "")):
            return
        raise Forbidden(
            "Web pages of this origin may not use the server. Whoever runs it can allow them by "
            "listing the origin in [cors] allow_origins."
        )

    async def _check_key(self, asked: Request | Websocket) -> None:
        if self._is_open(asked.endpoint):
            g.caller = Caller()
            return
        g.caller = await self._authenticate(_lower_case(asked), asked.remote_addr or "")

    def _is_open(self, endpoint: str | None) -> bool:
        view = self._view(endpoint)
        return view is not None and is_open(view, self._settings)

    def _check_body(self, asked: Request) -> None:
        # Unknown paths and wrong methods have an answer of their own.
        if asked.routing_exception is not None or not _has_body(asked):
            return
        accepted = {JSON, *getattr(self._view(asked.endpoint), _ACCEPTS, ())}
        if asked.mimetype not in accepted:
            raise UnsupportedMedia(
                f"The Content-Type of the body is {asked.mimetype or 'missing'}; "
                f"it must be {' or '.join(sorted(accepted))}."
            )

    def _view(self, endpoint: str | None) -> Callable[..., Any] | None:
        return self._app.view_functions.get(endpoint) if endpoint else None


def ours(host: str, settings: Settings) -> bool:
    """Whether a ``Host`` header can mean this server, on any port (ports get forwarded).

    On loopback: loopback's names and addresses. On the network without keys: addresses, the
    configured host, and names that nobody can register (without a dot, or in a private domain),
    so never one that a stranger can point here. Where a key is required any name passes: proxies
    have names of their own, and a page led astray has no key.
    """
    found = _HOST.fullmatch(host)
    if found is None:
        return False
    name = found["name"].rstrip(".").lower()
    if is_loopback(name) or name == settings.server.host.lower():
        return True
    if is_loopback(settings.server.host):
        return False
    return key_required(settings) or _is_private(name)


def _is_private(name: str) -> bool:
    return _is_address(name) or "." not in name or name.endswith(PRIVATE_SUFFIXES)


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name.strip("[]"))
    except ValueError:
        return False
    return True


def _same_site(origin: str, host: str) -> bool:
    """Whether a page's origin is the very host and port it asks, be it behind TLS or not."""
    scheme, _, authority = origin.lower().partition("://")
    default = {"http": "80", "https": "443"}.get(scheme)
    page, asked = _HOST.fullmatch(authority), _HOST.fullmatch(host.lower())
    if default is None or page is None or asked is None:
        return False
    return (page["name"], page["port"] or default) == (asked["name"], asked["port"] or default)


def _origin(text: str) -> str:
    origin = text.strip().lower()
    if origin.count("/") == 3:
        origin = origin.removesuffix("/")
    if not _ORIGIN.fullmatch(origin):
        raise ConfigError(
            f"[cors] allow_origins: '{text}' is no origin; write it like 'https://example.org', "
            "with a port where it has one, or '*' for any."
        )
    return origin


def _is_preflight(asked: Request) -> bool:
    return (
        asked.method == "OPTIONS"
        and "Origin" in asked.headers
        and "Access-Control-Request-Method" in asked.headers
    )


def _has_body(asked: Request) -> bool:
    if asked.content_length is not None:
        return asked.content_length > 0
    if "Transfer-Encoding" in asked.headers:
        return True
    # Neither is announced: HTTP/1 then sends none, newer versions may.
    announced = "Content-Type" in asked.headers or not asked.http_version.startswith("1")
    return announced and asked.method in ("POST", "PUT", "PATCH")


def _lower_case(asked: Request | Websocket) -> dict[str, str]:
    """Headers by lower-case name; repeated ones joined by a comma, as HTTP reads them."""
    headers: dict[str, str] = {}
    for name, value in asked.headers:
        key = name.lower()
        headers[key] = f"{headers[key]}, {value}" if key in headers else value
    return headers
