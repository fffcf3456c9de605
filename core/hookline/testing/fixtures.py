"""The fixtures that pytest finds where Hookline is installed. They import Hookline when used."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from hookline.testing import Answer, LocalServer, StreamedAnswer, TestClock


@pytest.fixture
def clock() -> TestClock:
    """The server's clock: it stands still until the test moves it."""
    from hookline.testing.clock import TestClock

    return TestClock()


@pytest.fixture
def server(tmp_path: Path, clock: TestClock) -> Iterator[LocalServer]:
    """A server with a scripted model, on loopback, and no plugin but those the test names."""
    from hookline.testing.server import LocalServer

    local = LocalServer(tmp_path / "hookline", clock)
    try:
        yield local
        local.raise_failures()
    finally:
        local.stop()


@pytest.fixture
def chat(server: LocalServer) -> Callable[..., Answer]:
    """``chat("Hello", field=value)``: asks the server and gives the answer, checked."""
    return server.chat


@pytest.fixture
def stream(server: LocalServer) -> Callable[..., StreamedAnswer]:
    """``stream("Hello", field=value)``: the same as a stream, each chunk checked."""
    return server.stream


@pytest.fixture
def only_plugins(server: LocalServer) -> Callable[..., None]:
    """``only_plugins("structured", "mine")``: switches on these installed plugins, in order."""

    def only(*names: str) -> None:
        server.configure(plugins=list(names))

    return only


@dataclass
class Allowance:
    """What a day brings; ``allowance(3)`` before the server starts."""

    server: LocalServer
    prompts: int = 0

    def __call__(self, prompts: int, *, per_key: bool = False) -> None:
        """Allows so many requests a day."""
        self.prompts = prompts
        self.server.configure(quota={"daily_prompts": prompts, "per_key": per_key})

    @property
    def left(self) -> int:
        """How many requests are left today, for everybody together."""
        today = self.server.clock.now.date()
        used: dict[str, int] = self.server.run(self.server.kernel.store.counts(today))
        return self.prompts - sum(used.values())


@pytest.fixture
def allowance(server: LocalServer) -> Allowance:
    """``allowance(3)`` allows three requests a day; ``allowance.left`` says how many are left."""
    return Allowance(server)


@pytest.fixture
def tmp_plugin(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, server: LocalServer
) -> Iterator[Callable[..., str]]:
    """``tmp_plugin("mine", source)``: installs a plugin for this test and switches it on; further
    arguments are its settings."""
    from hookline.testing.packages import install_plugin

    site = tmp_path / "site"
    site.mkdir()
    monkeypatch.syspath_prepend(str(site))
    modules: list[str] = []

    def install(name: str, source: str, class_name: str | None = None, **settings: Any) -> str:
        modules.append(install_plugin(site, source, name=name, class_name=class_name))
        importlib.invalidate_caches()
        return server.use(name, **settings)

    yield install
    for module in modules:
        sys.modules.pop(module, None)
