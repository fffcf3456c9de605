"""The list of models, health and metrics."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any

import httpx
import openai

from hookline import Engine, StartError, hookimpl
from hookline.app import create_app
from hookline.config import ModelSettings, Settings
from hookline.engines.scripted import ScriptedEngine, say


class Extra:
    """A plugin that knows one more model."""

    @hookimpl
    def list_models(self) -> Sequence[dict[str, Any]]:
        return [{"id": "some/owner/embedder", "kind": "embedding", "embeddings": True}]


async def test_the_list(on_port: Any) -> None:
    settings = {"models": {"big": {"source": "owner/repo"}}}
    async with (
        on_port(plugins={"extra": Extra()}, settings=settings) as server,
        openai.AsyncOpenAI(base_url=f"{server.url}/v1", api_key="x") as client,
    ):
        models: dict[str, Any] = {model.id: model async for model in client.models.list()}
        one: Any = await client.models.retrieve("some/owner/embedder")
    assert {"scripted", "big", "some/owner/embedder"} <= set(models)
    assert [model.id for model in models.values() if model.model_extra["loaded"]] == ["scripted"]
    assert next(iter(models)) == "scripted"
    for model in models.values():
        assert isinstance(model.created, int)
        assert model.object == "model"
        assert model.owned_by
        assert {"loaded", "engine", "context", "kind", "tools", "thinking", "vision"} <= set(
            model.model_extra["hookline"]
        )
    assert one == models["some/owner/embedder"]
    assert one.model_extra["hookline"]["kind"] == "embedding"
    assert models["scripted"].model_extra["hookline"]["context"] == 4096


async def test_a_plugin_tells_what_it_makes_the_loaded_model_able_to_do(in_process: Any) -> None:
    class Teaches:
        @hookimpl
        def list_models(self) -> Sequence[dict[str, Any]]:
            return [{"id": "scripted", "tools": True, "tricks": 2}]

    async with in_process(plugins={"teaches": Teaches()}) as server:
        models = (await server.client.get("/v1/models")).json()["data"]
        alone = (await server.client.get("/v1/models/scripted")).json()
    about = models[0]["hookline"]
    assert alone == models[0]
    assert [model["id"] for model in models].count("scripted") == 1
    assert (about["tools"], about["tricks"], about["thinking"]) == (True, 2, False)
    assert about["loaded"] is models[0]["loaded"] is True


async def test_one_that_is_not_there(on_port: Any) -> None:
    async with on_port() as server:
        for name in ("nothing", "a/b/c", "a//b", "%2e%2e", "x" * 3000, "%F0%9F%98%80", "a%2Fb"):
            answer = await server.client.get(f"/v1/models/{name}")
            assert answer.status_code == 404, name
            error = answer.json()["error"]
            assert (error["code"], error["param"]) == ("model_not_found", "model")
            assert len(error["message"]) < 300 and "did you mean" not in error["message"]
        answer = await server.client.get("/v1/models/scriptd")
        assert answer.status_code == 404
        assert "'scriptd'; did you mean scripted? GET" in answer.json()["error"]["message"]


async def test_health_is_ready(in_process: Any, notes: Any) -> None:
    async with in_process(plugins={"notes": notes}) as server:
        answer = await server.client.get("/health")
    body = answer.json()
    assert (answer.status_code, body["status"], body["model"]) == (200, "ready", "scripted")
    assert (body["running"], body["queued"], body["restarts"]) == (0, 0, 0)
    states = {plugin["name"]: plugin for plugin in body["plugins"]}
    assert states["notes"]["state"] == "active"
    assert states["notes"]["fields"] == ["note"]


class SlowEngine(ScriptedEngine):
    """Is loaded when the test says so."""

    def __init__(self) -> None:
        super().__init__(say("Good"))
        self.go = asyncio.Event()
        self.error: StartError | None = None

    async def load(self, progress: Callable[[float], None]) -> None:
        progress(0.5)
        await self.go.wait()
        if self.error is not None:
            raise self.error
        await super().load(progress)


class Slow:
    """A plugin with that engine."""

    def __init__(self, engine: SlowEngine) -> None:
        self.engine = engine

    @hookimpl
    def create_engine(self, model: ModelSettings) -> Engine:
        return self.engine


def client_of(app: Any) -> AbstractAsyncContextManager[httpx.AsyncClient]:
    return httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://127.0.0.1")


GENERATING: list[tuple[str, dict[str, Any]]] = [
    ("/v1/chat/completions", {"messages": [{"role": "user", "content": "x"}]}),
    ("/v1/chat/completions", {"messages": [{"role": "user", "content": "x"}], "stream": True}),
    ("/v1/completions", {"prompt": "x"}),
    ("/v1/tokenize", {"text": "x"}),
    ("/v1/detokenize", {"ids": [1]}),
]


async def test_while_the_model_is_loading(tmp_path: Any, until: Any) -> None:
    engine = SlowEngine()
    settings = Settings(data_dir=tmp_path, plugins=[])
    app = create_app(settings, plugins={"slow": Slow(engine)})
    kernel = app.extensions["hookline"]
    async with app.test_app(), client_of(app) as client:
        await until(lambda: kernel.progress == 0.5)
        health = await client.get("/health")
        assert (health.status_code, health.json()["status"]) == (503, "loading")
        assert health.json()["progress"] == 0.5
        assert "retry-after" in health.headers
        for path, body in GENERATING:
            answer = await client.post(path, json=body)
            assert answer.status_code == 503, path
            assert answer.json()["error"]["code"] == "model_not_loaded"
            assert int(answer.headers["retry-after"]) >= 1
        models = (await client.get("/v1/models")).json()["data"]
        assert not any(model["loaded"] for model in models)
        assert (await client.get("/metrics")).status_code == 200
        engine.go.set()
        await kernel.loaded
        assert (await client.get("/health")).status_code == 200
        assert (await client.post(*GENERATING[0][:1], json=GENERATING[0][1])).status_code == 200


async def test_when_the_model_cannot_be_loaded(tmp_path: Any, until: Any) -> None:
    engine = SlowEngine()
    engine.error = StartError("The file is cut off.")
    engine.go.set()
    app = create_app(Settings(data_dir=tmp_path, plugins=[]), plugins={"slow": Slow(engine)})
    kernel = app.extensions["hookline"]
    async with app.test_app(), client_of(app) as client:
        await until(kernel.loaded.done)
        health = await client.get("/health")
        assert (health.status_code, health.json()["status"]) == (503, "failed")
        assert health.json()["error"] == "The file is cut off."
        for path, body in GENERATING:
            assert (await client.post(path, json=body)).status_code == 503


async def test_metrics_count_and_hold_no_text_of_clients(in_process: Any, notes: Any) -> None:
    secret = "xyzzy"
    async with in_process(script=say("a", "b", "c"), plugins={"notes": notes}) as server:
        chat = (await server.chat(f"my {secret}", model=secret, user=secret)).json()
        await server.chat(f"my {secret}", max_tokens=1, **{secret: secret})
        await server.chat(temperature=secret)
        await server.client.post("/v1/completions", json={"prompt": secret, "model": secret})
        await server.client.get(f"/v1/models/{secret}")
        await server.client.get(f"/{secret}", headers={"Authorization": f"Bearer {secret}"})
        await server.client.request(secret.upper(), f"/v1/models/{secret}")
        answer = await server.client.get("/metrics")
    text = answer.text
    assert answer.headers["content-type"].startswith("text/plain")
    assert secret not in text.lower()
    route = "/v1/chat/completions"
    assert f'hookline_requests_total{{route="{route}",status="200"}} 2.0' in text
    assert f'hookline_requests_total{{route="{route}",status="400"}} 1.0' in text
    assert 'hookline_requests_total{route="none",status="404"} 1.0' in text
    assert 'hookline_choices_total{reason="stop"} 2.0' in text
    assert 'hookline_choices_total{reason="length"} 1.0' in text
    generated = 2 * chat["usage"]["completion_tokens"] + 1
    assert f'hookline_tokens_total{{kind="generated"}} {generated}.0' in text
    assert "hookline_requests_in_flight 0.0" in text
    assert 'hookline_plugin_seconds_count{hook="admit",plugin="notes"}' in text
    assert "hookline_time_to_first_token_seconds_count 3.0" in text
