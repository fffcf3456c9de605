"""One Hookline in front of another: the upstream is a real server with a scripted model."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from hookline.engines.scripted import CHAT_TEMPLATE
from hookline.testing import Break, LocalServer, Pause, Refused
from hookline_upstream import Upstream


@pytest.fixture
def behind(tmp_path: Path) -> Iterator[LocalServer]:
    """The server that generates."""
    with LocalServer(tmp_path / "behind") as server:
        yield server


@pytest.fixture
def front(server: LocalServer, behind: LocalServer, tmp_path: Path) -> LocalServer:
    """The server that clients talk to."""
    return in_front(server, behind.url, tmp_path)


def in_front(server: LocalServer, url: str, tmp_path: Path, **settings: Any) -> LocalServer:
    template = tmp_path / "template.jinja"
    template.write_text(CHAT_TEMPLATE)
    model = {"engine": "upstream", "source": "far-away", "context": 2048, "parallel": 2}
    server.configure(model={**model, "chat_template": template})
    server.use(Upstream, url=url, **{"kind": "hookline", **settings})
    return server


def test_it_answers(front: LocalServer, behind: LocalServer, chat: Callable[..., Any]) -> None:
    behind.says("From", " far", " away", ".")
    answer = chat("Hello there")
    assert answer.text == "From far away."
    assert answer.finish == "stop"
    assert behind.prompts == ["<|im_start|>user\nHello there<|im_end|>\n<|im_start|>assistant\n"]
    assert answer.body["usage"]["completion_tokens"] == 5
    assert answer.body["usage"]["prompt_tokens"] == len(behind.jobs[0].prompt)


def test_it_streams(front: LocalServer, behind: LocalServer, stream: Callable[..., Any]) -> None:
    behind.says("One", Pause(0.1), " two", Pause(0.1), " three")
    answer = stream("Count", max_tokens=2)
    assert answer.text == "One two"
    assert answer.finish == "length"
    assert len([chunk for chunk in answer.chunks if chunk["choices"][0]["delta"]]) >= 3


def test_sampling_goes_along(
    front: LocalServer, behind: LocalServer, chat: Callable[..., Any]
) -> None:
    chat(temperature=0.5, seed=7, top_p=0.9, logit_bias={"65": -5})
    sampling = behind.jobs[0].sampling
    assert (sampling.temperature, sampling.seed, sampling.top_p) == (0.5, 7, 0.9)
    assert sampling.logit_bias == {65: -5}


def test_logprobs(front: LocalServer, behind: LocalServer, chat: Callable[..., Any]) -> None:
    behind.says("Yes", "!")
    logprobs = chat(logprobs=True, top_logprobs=1).body["choices"][0]["logprobs"]["content"]
    assert [entry["token"] for entry in logprobs] == ["Yes", "!"]
    assert len(logprobs[0]["top_logprobs"]) == 1


def test_a_client_that_leaves_ends_the_work_there(
    front: LocalServer, behind: LocalServer, stream: Callable[..., Any]
) -> None:
    behind.plays(lambda prompt, job: (word for _ in range(10**6) for word in ("on ", Pause(0.01))))
    stream(leave_after=4)
    behind.wait_until_idle()
    front.wait_until_idle()


def test_clients_wait_for_a_place(front: LocalServer, behind: LocalServer) -> None:
    behind.says("A", Pause(0.05), "B")
    texts: list[str] = []
    threads = [threading.Thread(target=lambda: texts.append(front.chat().text)) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert texts == ["AB"] * 6
    assert front.kernel.stats().running == front.kernel.stats().queued == 0


@pytest.mark.parametrize(
    "fields",
    [
        {"response_format": {"type": "regex", "pattern": "a+"}},
        {"response_format": {"type": "json_object"}},
    ],
)
def test_constraints_are_refused(
    front: LocalServer, chat: Callable[..., Any], fields: dict[str, Any]
) -> None:
    front.use("structured")
    with pytest.raises(Refused) as refused:
        chat(**fields)
    assert refused.value.status == 400
    assert "no constraint can be enforced" in refused.value.error["message"]


def test_a_fault_there_is_a_502_here(
    front: LocalServer, behind: LocalServer, chat: Callable[..., Any]
) -> None:
    behind.says("One", Break(RuntimeError("out of memory")))
    with pytest.raises(Refused) as refused:
        chat()
    assert (refused.value.status, refused.value.error["code"]) == (502, "engine_unavailable")


def test_an_upstream_that_restarts_is_tried_again(
    server: LocalServer, tmp_path: Path, chat: Callable[..., Any]
) -> None:
    first = LocalServer(tmp_path / "behind").start()
    relay = Relay(int(first.url.rpartition(":")[2]))
    with relay:
        in_front(server, relay.url, tmp_path)
        assert chat().text
        relay.refuse = 2
        assert chat().text
        relay.refuse = 100
        with pytest.raises(Refused) as refused:
            chat()
        assert refused.value.status == 502
    first.stop()


def test_what_it_is_is_found_out(
    server: LocalServer, behind: LocalServer, tmp_path: Path, chat: Callable[..., Any]
) -> None:
    in_front(server, behind.url, tmp_path, kind="auto")
    assert chat().text
    (model,) = [m for m in server.client.get("/v1/models").json()["data"] if m["loaded"]]
    assert model["hookline"]["upstream"] == "hookline"


def test_no_upstream_is_one_clear_line(server: LocalServer, tmp_path: Path) -> None:
    in_front(server, "http://127.0.0.1:1", tmp_path)
    with pytest.raises(Exception, match=r"upstream http://127.0.0.1:1/ cannot be used"):
        server.start()


class Relay:
    """Passes connections on; closes the next ``refuse`` that ask for a completion."""

    def __init__(self, port: int) -> None:
        self.refuse = 0
        self._port = port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"

    def __enter__(self) -> Relay:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *error: object) -> None:
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with client, socket.create_connection(("127.0.0.1", self._port)) as server:
            threading.Thread(target=self._back, args=(server, client), daemon=True).start()
            while data := self._received(client):
                if b"/v1/completions" in data and self.refuse:
                    self.refuse -= 1
                    return
                server.sendall(data)

    def _back(self, server: socket.socket, client: socket.socket) -> None:
        while data := self._received(server):
            try:
                client.sendall(data)
            except OSError:
                return

    @staticmethod
    def _received(connection: socket.socket) -> bytes:
        try:
            return connection.recv(65536)
        except OSError:
            return b""
