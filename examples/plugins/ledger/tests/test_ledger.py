"""The route and the command show the same counts."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from hookline.config import Settings
from hookline.testing import LocalServer, PluginContractTests, Refused
from hookline_ledger import Ledger, show


def test_what_was_used(server: LocalServer, chat: Callable[..., Any]) -> None:
    server.use(Ledger)
    server.says("Three", " tokens", ".")
    answers = [chat("Hi"), chat("Hello there")]
    server.wait_until_idle()
    (entry,) = server.client.get("/v1/ledger").json()["data"]
    assert entry == {
        "caller": "anonymous",
        "requests": 2,
        "prompt_tokens": sum(answer.body["usage"]["prompt_tokens"] for answer in answers),
        "completion_tokens": 8,
    }


def test_it_survives_a_restart(server: LocalServer, chat: Callable[..., Any]) -> None:
    server.use(Ledger)
    chat()
    server.stop()
    chat()
    (entry,) = server.client.get("/v1/ledger").json()["data"]
    assert entry["requests"] == 2


def test_refused_requests_cost_nothing(server: LocalServer, chat: Callable[..., Any]) -> None:
    server.use(Ledger)
    with pytest.raises(Refused):
        chat("x" * 10_000)
    server.wait_until_idle()
    (entry,) = server.client.get("/v1/ledger").json()["data"]
    assert entry["prompt_tokens"] == entry["completion_tokens"] == 0


def test_the_command(server: LocalServer, chat: Callable[..., Any], tmp_path: Path) -> None:
    server.use(Ledger)
    chat()
    server.wait_until_idle()
    settings = Settings(data_dir=server.kernel.data_dir)
    shown = CliRunner().invoke(show, ["--json"], obj=settings, catch_exceptions=False)
    assert json.loads(shown.stdout)[0]["requests"] == 1
    table = CliRunner().invoke(show, [], obj=settings, catch_exceptions=False)
    assert "anonymous" in table.stdout


class TestContract(PluginContractTests):
    plugin = Ledger
