"""What every plugin must do, as tests to inherit."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import pytest
from pydantic import BaseModel

from hookline.engines.scripted import Pause
from hookline.testing.server import LocalServer, plugin_name

IMPORT_PROBE = """
import json, sys, threading, time
import hookline
hookline_seconds = time.process_time()
import {module}
print(json.dumps({{
    "threads": [thread.name for thread in threading.enumerate()][1:],
    "ratio": (time.process_time() - hookline_seconds) / hookline_seconds,
    "loaded": [name for name in {heavy} if name in sys.modules],
}}))
"""

HEAVY = (
    "torch",
    "numpy",
    "scipy",
    "pandas",
    "PIL",
    "lxml",
    "onnxruntime",
    "lancedb",
    "transformers",
)
"""Libraries that take long to import, and that a plugin imports when it first needs them."""


class PluginContractTests:
    """Inherit, say which plugin, and pytest runs what every plugin must do::

        class TestContract(PluginContractTests):
            plugin = Weather
            settings = {"place": "here"}
            bad_settings = [{"place": 3}]
            request = {"weather": True}

    ``settings`` are valid settings, ``bad_settings`` tables that must be refused, ``request`` the
    request fields that put it to work, ``extra_plugins`` what it needs beside it, ``heavy_imports``
    those heavy libraries that importing its module may load, ``said`` what the model says.
    """

    plugin: ClassVar[type]
    name: ClassVar[str | None] = None
    settings: ClassVar[Mapping[str, Any]] = {}
    bad_settings: ClassVar[Sequence[Mapping[str, Any]]] = ()
    request: ClassVar[Mapping[str, Any]] = {}
    extra_plugins: ClassVar[Sequence[str]] = ()
    heavy_imports: ClassVar[Sequence[str]] = ()
    said: ClassVar[Sequence[str]] = ("One", " two", " three", ".")

    @pytest.fixture
    def started(self, tmp_path: Path) -> Iterator[LocalServer]:
        """A server with the plugin, and a model that says four words."""
        server = self._server(tmp_path / "hookline", self.settings)
        try:
            yield server
            server.raise_failures()
        finally:
            server.stop()

    def test_it_is_active_and_listed(self, started: LocalServer) -> None:
        """It loads without a complaint, and ``/health`` shows its hooks and fields."""
        name = self._name()
        started.plugin(name)
        listed = started.client.get("/health").json()["plugins"]
        (entry,) = [plugin for plugin in listed if plugin["name"] == name]
        assert entry["state"] == "active"
        assert entry["hooks"], "it implements no hook; are its methods marked with hookimpl?"
        fields = getattr(self.plugin, "request_fields", None)
        assert set(entry["fields"]) == set(fields.model_fields if fields else ())

    def test_plain_chat_is_left_alone(self, started: LocalServer) -> None:
        """A request that asks for none of its fields is answered, plain and streamed."""
        plain, streamed = started.chat("Hi"), started.stream("Hi")
        assert plain.finish == streamed.finish
        assert plain.text == streamed.text

    def test_it_works_plain_and_streamed(self, started: LocalServer) -> None:
        """With its own fields, both kinds of answer say the same."""
        plain = started.chat("Hi", **self.request)
        streamed = started.stream("Hi", **self.request)
        assert (plain.text, plain.reasoning) == (streamed.text, streamed.reasoning)
        assert plain.finish == streamed.finish
        names = [call["function"]["name"] for call in plain.tool_calls]
        assert names == [call["function"]["name"] for call in streamed.tool_calls]

    def test_two_at_once_do_not_mix(self, started: LocalServer) -> None:
        """The state of a request stays with it: the second asks while the first is at work."""
        started.plays(lambda prompt, job: ["A", Pause(0.05), "B"])
        alone = started.chat("Hi", **self.request).text
        said: list[str] = []
        threads = [
            threading.Thread(target=lambda: said.append(started.chat("Hi", **self.request).text))
            for _ in range(3)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert said == [alone] * 3

    def test_it_survives_clients_that_leave(self, started: LocalServer) -> None:
        """A client goes away in the middle: the generator is free, and the next one is answered."""
        started.plays(lambda prompt, job: _slow_words())
        started.stream("Hi", leave_after=2, **self.request)
        started.wait_until_idle()
        started.says(*self.said)
        started.chat("Hi", **self.request)

    def test_its_routes_ask_for_a_key(self, started: LocalServer) -> None:
        """With keys required, nothing but ``/health`` answers without one."""
        started.configure(auth={"require_api_key": True})
        for method, path in started.routes:
            body: dict[str, Any] | None = {} if method in ("POST", "PUT", "PATCH") else None
            response = started.client.request(method, path, json=body)
            expected = 200 if path == "/health" else 401
            assert response.status_code == expected, f"{method} {path} answers without a key"

    def test_it_stops_and_starts_again(self, started: LocalServer) -> None:
        """Everything it began ends with the server, and it can begin again with the same data."""
        before = set(threading.enumerate())
        for _ in range(2):
            started.start().chat("Hi", **self.request)
            started.stop()

        def left() -> set[str]:
            news = {thread.name for thread in set(threading.enumerate()) - before}
            return {name for name in news if not name.startswith("asyncio_")}

        try:
            started.wait_until(lambda: not left())
        except AssertionError:
            raise AssertionError(f"threads are left behind: {sorted(left())}") from None

    def test_two_servers_in_one_process(self, started: LocalServer, tmp_path: Path) -> None:
        """Nothing is kept at module level: a second server does not disturb the first."""
        first = started.chat("Hi", **self.request).text
        with self._server(tmp_path / "second", self.settings) as second:
            assert second.chat("Hi", **self.request).text == first
        assert started.chat("Hi", **self.request).text == first

    def test_what_one_server_was_told_stays_there(
        self, started: LocalServer, tmp_path: Path
    ) -> None:
        """Nothing of a conversation with one server is in the answer of another."""
        secret = "alpha-secret"  # noqa: S105
        started.chat(f"Remember {secret}", **self.request)
        with self._server(tmp_path / "second", self.settings) as second:
            answer = second.chat("What do you know?", **self.request)
            assert secret not in json.dumps(answer.body), f"it keeps {secret} at module level"
            assert not any(secret in prompt for prompt in second.prompts), (
                f"it puts {secret}, which another server was told, into the prompt"
            )

    def test_it_refuses_settings_it_does_not_know(self, tmp_path: Path) -> None:
        """A misspelt setting is named, and costs this plugin only."""
        takes_any = getattr(self.plugin, "settings_model", None) is not None
        word = "no_such_setting" if takes_any else "takes none"
        self._refused(tmp_path, {"no_such_setting": 1}, word)

    def test_it_refuses_bad_settings(self, tmp_path: Path) -> None:
        """Each of ``bad_settings`` is refused in words that name the setting."""
        for number, table in enumerate(self.bad_settings):
            self._refused(tmp_path / str(number), table, next(iter(table)))

    def test_what_it_adds_is_described(self) -> None:
        """Every request field and setting has a description, which the reference page shows."""
        for attribute in ("request_fields", "settings_model"):
            model: type[BaseModel] | None = getattr(self.plugin, attribute, None)
            for field, info in (model.model_fields if model else {}).items():
                assert info.description, f"{attribute}: '{field}' has no description"

    def test_importing_it_does_nothing(self) -> None:
        """Importing its module starts nothing, prints nothing, and loads nothing heavy."""
        heavy = [name for name in HEAVY if name not in self.heavy_imports]
        probe = IMPORT_PROBE.format(module=self.plugin.__module__, heavy=heavy)
        done = subprocess.run(  # noqa: S603
            [sys.executable, "-W", "error", "-c", probe],
            check=False,
            capture_output=True,
            text=True,
            env={"PYTHONPATH": ":".join(sys.path), "PATH": ""},
        )
        assert done.returncode == 0, done.stderr
        assert not done.stderr, f"importing it writes to stderr: {done.stderr}"
        assert done.stdout.count("\n") == 1, f"importing it prints: {done.stdout}"
        found = json.loads(done.stdout)
        assert not found["threads"], f"importing it starts threads: {found['threads']}"
        assert not found["loaded"], f"importing it loads {found['loaded']}; import where needed"
        assert found["ratio"] < 3, "importing it takes several times as long as importing hookline"

    def _name(self) -> str:
        return self.name or plugin_name(self.plugin)

    def _server(self, data_dir: Path, settings: Mapping[str, Any]) -> LocalServer:
        server = LocalServer(data_dir)
        for other in self.extra_plugins:
            server.use(other)
        server.use(self.plugin, self.name, **settings)
        server.says(*self.said)
        return server

    def _refused(self, data_dir: Path, table: Mapping[str, Any], word: str) -> None:
        """The plugin is off for a reason with this word, and chat goes on without it."""
        refusing = self._server(data_dir, {**self.settings, **table})
        refusing.tolerant = True
        with refusing as server:
            entry = server.kernel.plugins.found[self._name()]
            assert entry.state == "failed", f"it accepts {table}"
            assert word in (entry.reason or ""), entry.reason
            assert server.chat("Hi").finish


def _slow_words() -> Iterator[Any]:
    for _ in range(1000):
        yield "word "
        yield Pause(0.01)
