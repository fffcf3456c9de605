"""API keys: who is asking, and where a key is required.

A key is ``hl-`` and 256 random bits. Only its SHA-256 is kept: guessing 256 bits is hopeless, so
the slow hash that passwords need would cost time on every request and protect nothing.
"""

from __future__ import annotations

import hmac
import ipaddress
import logging
import secrets
import sqlite3
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import ClassVar

from hookline.config import Settings
from hookline.errors import ConfigError, InvalidApiKey
from hookline.exchange import Caller
from hookline.hookspecs import hookimpl
from hookline.store import Store, StoredKey

log = logging.getLogger(__name__)

KEY_PREFIX = "hl-"
KEY_BYTES = 32
TOUCH_EVERY = timedelta(minutes=1)
"""How exact the noted last use of a key is; spares a write on most requests."""


class Auth:
    """The plugin that knows API keys.

    Where no key is required, everybody is answered, and a valid key still says who its caller is.
    """

    essential: ClassVar[bool] = True

    def __init__(self, settings: Settings, store: Store) -> None:
        self._required = key_required(settings)
        self._store = store

    @hookimpl
    @asynccontextmanager
    async def lifespan(self) -> AsyncIterator[None]:
        if self._required and all(key.revoked for key in await self._store.keys()):
            log.warning("A key is required and there is none: make one with 'hookline keys new'.")
        yield

    @hookimpl
    async def authenticate(self, headers: Mapping[str, str]) -> Caller:
        """The caller that the ``Authorization`` header names, or an anonymous one where no key is
        required. Raises InvalidApiKey."""
        key = bearer_key(headers.get("authorization", ""))
        known = await self._find(key) if key else None
        if known:
            return Caller(id=known.id, name=known.name)
        if self._required:
            raise _refusal(headers.get("authorization"), key)
        return Caller()

    async def _find(self, key: str) -> StoredKey | None:
        hash = hash_key(key)
        known = await self._store.find_key(key_id(hash))
        if known is None or not hmac.compare_digest(known.hash, hash):
            return None
        await self._note_use(known, datetime.now(UTC))
        return known

    async def _note_use(self, key: StoredKey, now: datetime) -> None:
        if key.last_used and now - key.last_used < TOUCH_EVERY:
            return
        try:
            await self._store.touch_key(key.id, now)
        except sqlite3.Error as error:
            # A full disk must not lock out whoever has a valid key.
            log.warning("Cannot note the last use of key '%s': %s", key.name, error)


def new_key(name: str, now: datetime) -> tuple[str, StoredKey]:
    """A fresh key, to be shown once, and what is kept of it."""
    key = KEY_PREFIX + secrets.token_urlsafe(KEY_BYTES)
    hash = hash_key(key)
    return key, StoredKey(id=key_id(hash), hash=hash, name=name, created=now)


def hash_key(key: str) -> str:
    """The SHA-256 of a key in hex."""
    return sha256(key.encode("utf-8", "surrogateescape")).hexdigest()


def key_id(hash: str) -> str:
    """What a key is called in logs and counts, and found by: the start of its hash.

    Finding by a part that is no secret leaves the comparison to the constant-time one.
    """
    return f"key-{hash[:12]}"


def bearer_key(authorization: str) -> str | None:
    """The key in ``Bearer <key>``, the scheme in any case; None when it does not read like that."""
    scheme, _, key = authorization.strip().partition(" ")
    key = key.strip()
    return key if scheme.lower() == "bearer" and key and " " not in key else None


def _refusal(authorization: str | None, key: str | None) -> InvalidApiKey:
    if not authorization:
        message = "An API key is required: send the header 'Authorization: Bearer <key>'."
    elif key is None:
        message = "The Authorization header must read 'Bearer <key>', with one API key."
    else:
        message = "The API key is wrong or was revoked; ask whoever runs this server for a new one."
    return InvalidApiKey(message, headers={"WWW-Authenticate": "Bearer"})


def key_required(settings: Settings) -> bool:
    """Whether requests without a valid key are refused."""
    if settings.auth.require_api_key:
        return True
    return not (is_loopback(settings.server.host) or settings.auth.allow_no_key_on_network)


def network_rule(settings: Settings) -> None:
    """Raises ConfigError when the server would listen beyond loopback and nothing says whether
    keys are asked for."""
    if key_required(settings) and not settings.auth.require_api_key:
        raise ConfigError(
            f"[server] host = '{settings.server.host}' opens the server to the network: set "
            "[auth] require_api_key = true, or [auth] allow_no_key_on_network = true to let "
            "anybody in, or listen on 127.0.0.1."
        )


def is_loopback(host: str) -> bool:
    """Whether a host, as one listens on it or as a ``Host`` header names it, is this machine only.

    Of names only ``localhost`` and those below it are: what another name leads to can change
    between asking and listening.
    """
    name = host.strip().strip("[]").rstrip(".").lower()
    try:
        address = ipaddress.ip_address(name)
    except ValueError:
        return name == "localhost" or name.endswith(".localhost")
    mapped = getattr(address, "ipv4_mapped", None)
    return (mapped or address).is_loopback
