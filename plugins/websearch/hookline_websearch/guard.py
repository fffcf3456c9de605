"""Which addresses may be reached, decided where the connection is made.

Names are looked up once, every answer is checked, and the connection goes to an address that was
checked: whatever a name means a moment later changes nothing. The table of addresses and the rules
for URLs are ssrfguard's. The connecting is done here, because ssrfguard's own client waits for a
name server that does not answer, whatever the deadline.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor

import httpcore
from pydantic import IPvAnyNetwork
from ssrfguard import Address, Policy, Resolver, SSRFGuardError, resolve

log = logging.getLogger(__name__)

LOOKUPS = 32
"""Names that are looked up at once. A name server can hold a thread for half a minute, so they
are not the event loop's own threads."""

ATTEMPTS = 4
"""Addresses of one name that are tried."""


class Refused(Exception):
    """The address must not be reached; ``str(error)`` says why, as half a sentence.

    It names no address that a name stands for, since that would tell strangers about the network.
    """


class Guard:
    """Decides what may be reached.

    ``networks`` may be, although they are not public; ``ports`` are the only ones. ``resolver``
    stands in for `socket.getaddrinfo`; what it answers is checked all the same.
    """

    def __init__(
        self,
        networks: Iterable[IPvAnyNetwork] = (),
        ports: Iterable[int] = (80, 443),
        resolver: Resolver | None = None,
    ) -> None:
        self._policy = Policy(
            allowed_networks=tuple(networks),
            allowed_ports=frozenset(ports),
            max_connection_attempts=ATTEMPTS,
        )
        self._resolver = resolver
        self._threads = ThreadPoolExecutor(LOOKUPS, thread_name_prefix="names")

    def check(self, url: str) -> None:
        """Raises Refused for a URL that is refused however its name is looked up."""
        try:
            self._policy.check_url(url)
        except SSRFGuardError as error:
            raise _refusal(error) from error

    async def addresses(self, host: str, port: int) -> Sequence[Address]:
        """What a host stands for, all of it allowed, to be tried in that order.

        Raises Refused, or OSError where nobody knows the name.
        """
        scheme = "https" if port == 443 else "http"
        bracketed = f"[{host}]" if ":" in host else host
        try:
            target = self._policy.check_url(f"{scheme}://{bracketed}:{port}/")
            found = await asyncio.get_running_loop().run_in_executor(
                self._threads,
                lambda: resolve(target, policy=self._policy, resolver=self._resolver),
            )
        except SSRFGuardError as error:
            raise _refusal(error) from error
        except UnicodeError as error:
            raise Refused("its host is not a name") from error
        # IPv4 first: where IPv6 is only half set up, connecting by it fails late, not at once.
        return sorted(found, key=lambda address: address.ip.version)[:ATTEMPTS]

    async def open(self, host: str, port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Connects. Raises Refused, or OSError where nobody answers."""
        failed: OSError | None = None
        for address in await self.addresses(host, port):
            try:
                return await asyncio.open_connection(str(address.ip), port)
            except OSError as error:
                failed = error
        raise failed or OSError("no address")

    def close(self) -> None:
        """Forgets lookups that wait."""
        self._threads.shutdown(wait=False, cancel_futures=True)


class GuardedBackend(httpcore.AsyncNetworkBackend):
    """Connects an HTTP client to what the guard allows, and to nothing else."""

    def __init__(self, guard: Guard) -> None:
        self._guard = guard
        self._plain = httpcore.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109  # the signature is httpcore's
        local_address: str | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        """A connection to the first address that answers."""
        failed: Exception | None = None
        try:
            async with asyncio.timeout(timeout):
                found = await self._guard.addresses(host, port)
        except socket.gaierror as error:
            raise httpcore.ConnectError("its name is not known") from error
        except TimeoutError as error:
            raise httpcore.ConnectTimeout("nobody says where its name is") from error
        for address in found:
            try:
                return await self._plain.connect_tcp(
                    str(address.ip), port, timeout, local_address, socket_options
                )
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                failed = error
        raise failed or httpcore.ConnectError("it has no address")

    async def connect_unix_socket(
        self,
        path: str,
        timeout: float | None = None,  # noqa: ASYNC109  # the signature is httpcore's
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        """Never: a file is not on the web."""
        raise Refused("a socket file is no web server")

    async def sleep(self, seconds: float) -> None:
        """Waits between attempts."""
        await asyncio.sleep(seconds)


def _refusal(error: SSRFGuardError) -> Refused:
    log.debug("refused: %s", error)
    reason = str(getattr(error, "reason", ""))
    if "allowed_ports" in reason:
        return Refused("its port is not among allowed_ports")
    if "scheme" in reason:
        return Refused("only http and https are read")
    return Refused("it is not an address of the public web")
