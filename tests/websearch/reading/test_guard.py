"""What must not be reached is not reached, however it is spelled and whoever leads there."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Callable
from typing import Any

import pytest

from hookline_websearch.fetch import Unread
from hookline_websearch.guard import Guard, Refused

HOSTILE = [
    "http://127.0.0.1:{port}/",
    "http://127.0.0.1:{port}/robots.txt",
    "http://127.1:{port}/",
    "http://127.0.1:{port}/",
    "http://127.255.255.254:{port}/",
    "http://2130706433:{port}/",
    "http://0x7f000001:{port}/",
    "http://0x7f.0.0.1:{port}/",
    "http://0x7f.1:{port}/",
    "http://0177.0.0.1:{port}/",
    "http://017700000001:{port}/",
    "http://0177.1:{port}/",
    "http://00000177.0.0.1:{port}/",
    "http://127.0.0.1.:{port}/",
    "http://0:{port}/",
    "http://0.0.0.0:{port}/",
    "http://localhost:{port}/",
    "http://LOCALHOST:{port}/",
    "http://localhost.:{port}/",
    "http://localhost.localdomain:{port}/",
    "http://ip6-localhost:{port}/",
    "http://[::1]:{port}/",
    "http://[0:0:0:0:0:0:0:1]:{port}/",
    "http://[::]:{port}/",
    "http://[::ffff:127.0.0.1]:{port}/",
    "http://[::ffff:7f00:1]:{port}/",
    "http://[::127.0.0.1]:{port}/",
    "http://[64:ff9b::7f00:1]:{port}/",
    "http://[64:ff9b:1::7f00:1]:{port}/",
    "http://[2002:7f00:1::]:{port}/",
    "http://[2001:0:7f00:1::]:{port}/",
    "http://[fe80::1]:{port}/",
    "http://[fe80::1%25lo]:{port}/",
    "http://[::1%25lo]:{port}/",
    "http://[fc00::1]:{port}/",
    "http://[fd00:ec2::254]:{port}/",
    "http://[ff02::1]:{port}/",
    "http://[fec0::1]:{port}/",
    "http://10.0.0.1:{port}/",
    "http://172.16.0.1:{port}/",
    "http://192.168.1.1:{port}/",
    "http://100.64.0.1:{port}/",
    "http://169.254.169.254:{port}/latest/meta-data/",
    "http://[::ffff:169.254.169.254]:{port}/",
    "http://2852039166:{port}/",
    "http://100.100.100.200:{port}/",
    "http://192.0.0.192:{port}/",
    "http://224.0.0.1:{port}/",
    "http://240.0.0.1:{port}/",
    "http://255.255.255.255:{port}/",
    "http://198.18.0.1:{port}/",
    "http://127。0。0。1:{port}/",
    "http://①②⑦.⓪.⓪.①:{port}/",
    "http://１２７.0.0.1:{port}/",
    "http://loc\u00adalhost:{port}/",
    "http://user@127.0.0.1:{port}/",
    "http://127.0.0.2@127.0.0.1:{port}/",
    "http://127.0.0.1:{port}\\@127.0.0.2/",
    "http://127.0.0.2\\@127.0.0.1:{port}/",
    "http://127.0.0.1:{port}#@127.0.0.2/",
    "http://127.0.0.1\t:{port}/",
    "http://127.0.0.1%2f@127.0.0.2:{port}/",
    "http:127.0.0.1:{port}/",
    "http:///127.0.0.1:{port}/",
    "//127.0.0.1:{port}/",
    "https://127.0.0.1:{port}/",
    "ftp://127.0.0.1:{port}/",
    "gopher://127.0.0.1:{port}/_GET",
    "ws://127.0.0.1:{port}/",
    "file:///etc/hostname",
    "data:text/html,hello",
    "javascript:alert(1)",
    "unix:///var/run/docker.sock",
]

NAMES = {
    "loopback.test": ["127.0.0.1"],
    "private.test": ["10.1.2.3"],
    "metadata.test": ["169.254.169.254"],
    "six.test": ["::1"],
    "mapped.test": ["::ffff:127.0.0.1"],
    "both.test": ["127.0.0.2", "127.0.0.1"],
    "unspecified.test": ["0.0.0.0"],  # noqa: S104
}


class Names:
    """A name server that answers with the next of a name's addresses each time."""

    def __init__(self, *answers: list[str]) -> None:
        self._answers = list(answers)
        self.asked = 0

    def __call__(self, host: str, port: int, *_: Any) -> list[Any]:
        self.asked += 1
        found = NAMES.get(host) or (
            self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        )
        return [
            (
                socket.AF_INET6 if ":" in address else socket.AF_INET,
                socket.SOCK_STREAM,
                6,
                "",
                (address, port, 0, 0) if ":" in address else (address, port),
            )
            for address in found
        ]


async def test_hostile_addresses_are_never_connected_to(fetchers: Any, canary: Any) -> None:
    assert len(HOSTILE) >= 50
    async with fetchers(allowed_ports=[canary.port, 80, 443], robots=False) as fetcher:
        for hostile in HOSTILE:
            with pytest.raises(Unread):
                await fetcher.fetch(hostile.format(port=canary.port))
    assert canary.visits == 0


async def test_the_canary_would_have_seen_them(fetchers: Any, canary: Any) -> None:
    async with fetchers(
        allowed_ports=[canary.port], allowed_networks=["127.0.0.0/8", "::1/128"]
    ) as fetcher:
        for address in ("127.0.0.1", "[::1]"):
            with pytest.raises(Unread):
                await fetcher.fetch(f"http://{address}:{canary.port}/")
    assert canary.visits > 0


async def test_redirects_lead_to_none_of_them(
    fetchers: Any, web: Any, canary: Any, answers: Callable[..., bytes]
) -> None:
    ports = [web.port, canary.port, 80, 443]
    async with fetchers(allowed_ports=ports, robots=False) as fetcher:
        for index, hostile in enumerate(HOSTILE):
            target = hostile.format(port=canary.port).encode("utf-8").decode("latin-1")
            web.pages[f"/{index}"] = answers("", "302 Found", Location="\0").replace(
                b"\0", target.encode("latin-1")
            )
            # "http:127..." is a path of the site itself for some, and then simply not there.
            with pytest.raises(Unread):
                await fetcher.fetch(web.url(f"/{index}"))
    assert canary.visits == 0


@pytest.mark.parametrize("name", NAMES)
async def test_names_that_lead_to_them_are_refused(fetchers: Any, canary: Any, name: str) -> None:
    async with fetchers(Names(["127.0.0.1"]), allowed_ports=[canary.port], robots=False) as fetcher:
        with pytest.raises(Unread, match="not an address of the public web"):
            await fetcher.fetch(f"http://{name}:{canary.port}/")
    assert canary.visits == 0


async def test_a_name_is_looked_up_once_a_connection(
    fetchers: Any, web: Any, answers: Callable[..., bytes]
) -> None:
    names = Names(["127.0.0.2"], ["127.0.0.1"])
    web.pages["/"] = answers("<p>hello")
    async with fetchers(names, robots=False) as fetcher:
        url = f"http://moving.test:{web.port}/"
        assert (await fetcher.fetch(url)).body == b"<p>hello"
        assert names.asked == 1
        with pytest.raises(Unread, match="not an address of the public web"):
            await fetcher.fetch(url)
    assert names.asked == 2


async def test_a_name_server_that_hangs_costs_the_deadline_only(fetchers: Any) -> None:
    release, answered = threading.Event(), threading.Event()

    def hang(*_: Any) -> list[Any]:
        release.wait(60)
        answered.set()
        return []

    async with fetchers(hang, allowed_ports=[80], robots=False) as fetcher:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.1):
                await fetcher.fetch("http://slow.test/")
        assert not answered.is_set()
        release.set()


async def test_refusals_tell_nothing_about_the_network(fetchers: Any) -> None:
    async with fetchers(Names(["10.9.8.7"]), allowed_ports=[80], robots=False) as fetcher:
        with pytest.raises(Unread) as refused:
            await fetcher.fetch("http://intranet.test/")
    assert "10." not in str(refused.value)


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("http://example.com:22/", "allowed_ports"),
        ("ftp://example.com/", "only http and https"),
        ("http://user:secret@example.com/", "public web"),
        ("http://192.168.0.1/", "public web"),
        ("no address", "public web"),
    ],
)
def test_what_is_refused_without_a_lookup(url: str, reason: str) -> None:
    with pytest.raises(Refused, match=reason):
        Guard().check(url)


@pytest.mark.parametrize(
    "url",
    ["https://example.com/a?b=c#d", "http://bücher.example/", "http://8.8.8.8/", "http://a.b.:80/"],
)
def test_what_is_public_is_allowed(url: str) -> None:
    Guard().check(url)
