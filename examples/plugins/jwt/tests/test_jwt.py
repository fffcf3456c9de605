"""Tokens that let in, and those that do not."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import jwt
import pytest

from hookline import Caller, Exchange, hookimpl
from hookline.testing import LocalServer
from hookline_jwt import Jwt

SECRET = "a secret of at least thirty-two bytes"
BODY = {"messages": [{"role": "user", "content": "Hello"}]}


@pytest.fixture
def key_file(tmp_path: Path) -> Path:
    path = tmp_path / "secret"
    path.write_text(SECRET)
    return path


def token(secret: str = SECRET, **claims: Any) -> str:
    standard = {"sub": "u-1", "name": "Ada", "exp": time.time() + 60, "aud": "hookline"}
    return jwt.encode({**standard, **claims}, secret, algorithm="HS256")


def status(server: LocalServer, bearer: str | None) -> int:
    headers = {"Authorization": f"Bearer {bearer}"} if bearer else {}
    return server.client.post("/v1/chat/completions", json=BODY, headers=headers).status_code


class Who:
    """Notes who asks."""

    def __init__(self) -> None:
        self.callers: list[Caller] = []

    @hookimpl
    async def admit(self, exchange: Exchange) -> None:
        self.callers.append(exchange.caller)


@pytest.fixture
def who(server: LocalServer, key_file: Path) -> Who:
    who = Who()
    server.use(Jwt, key_file=key_file, algorithms=["HS256"], audience="hookline")
    server.use(who)
    server.configure(auth={"require_api_key": True})
    return who


def test_a_good_token(server: LocalServer, who: Who) -> None:
    assert status(server, token()) == 200
    assert (who.callers[0].id, who.callers[0].name) == ("jwt:u-1", "Ada")


@pytest.mark.parametrize(
    "bad",
    [
        token(exp=time.time() - 3600),
        token(aud="somebody else"),
        token(secret="another secret of thirty-two bytes!"),
        token()[:-4] + "AAAA",
        jwt.encode(
            {"sub": "u-1", "exp": time.time() + 60, "aud": "hookline"}, "", algorithm="none"
        ),
        "not.a.token",
        "hk-some-key-of-hookline",
        None,
    ],
    ids=["expired", "audience", "key", "signature", "unsigned", "nonsense", "a key", "nothing"],
)
def test_bad_tokens(server: LocalServer, who: Who, bad: str | None) -> None:
    assert status(server, bad) == 401
    assert not who.callers


def test_without_its_key_the_server_does_not_start(server: LocalServer, tmp_path: Path) -> None:
    server.use(Jwt, key_file=tmp_path / "nowhere", algorithms=["HS256"])
    with pytest.raises(Exception, match=r"essential plugin 'jwt'.*nowhere"):
        server.start()
