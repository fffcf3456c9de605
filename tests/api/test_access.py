import re
from collections.abc import AsyncIterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

import httpx
import pytest
from quart import Blueprint, Quart, Response, g, request, websocket
from quart.testing.connections import WebsocketResponseError
from quart.typing import TestClientProtocol as Client

from hookline.api import errors
from hookline.api.access import (
    EXPOSED_HEADERS,
    accepts,
    docs_route,
    install,
    open_route,
    ours,
)
from hookline.app import create_app
from hookline.auth import new_key
from hookline.config import Settings
from hookline.errors import ConfigError, InvalidApiKey
from hookline.exchange import Caller
from hookline.hookspecs import hookimpl
from hookline.store import Store

ANYWHERE = "0.0.0.0"  # noqa: S104
PAGE = "https://page.example"


def a_plugin() -> Blueprint:
    routes = Blueprint("plugin", __name__)

    @routes.route("/plugin", methods=["GET", "POST"])
    async def view() -> str:
        return "plugin"

    @routes.websocket("/socket")
    async def socket() -> None:
        await websocket.send(g.caller.name)

    return routes


def core() -> Blueprint:
    routes = Blueprint("core", __name__)

    @routes.route("/who", methods=["GET", "POST"])
    async def who() -> str:
        await request.get_data()
        return str(g.caller.name)

    @routes.get("/health")
    @open_route
    async def health() -> str:
        return str(g.caller.name)

    @routes.get("/docs")
    @docs_route
    async def docs() -> str:
        return "docs"

    @routes.post("/files")
    @accepts("multipart/form-data")
    async def files() -> str:
        return str(sorted((await request.form).items()))

    @routes.get("/stream")
    async def stream() -> Response:
        async def body() -> AsyncIterator[bytes]:
            yield b"data: [DONE]\n\n"

        return Response(body(), content_type="text/event-stream")

    @routes.get("/broken")
    async def broken() -> str:
        raise RuntimeError("oops")

    return routes


def make_app(settings: Settings, seen: list[Mapping[str, str]] | None = None) -> Quart:
    """An application with one route of each kind, whose only key is ``right``."""
    app = Quart(__name__)
    app.config["MAX_CONTENT_LENGTH"] = 1000
    errors.install(app)

    async def authenticate(headers: Mapping[str, str], address: str) -> Caller:
        if seen is not None:
            seen.append({**headers, "address": address})
        if headers.get("authorization") == "Bearer right":
            return Caller("key-1", "laptop")
        if settings.auth.require_api_key:
            raise InvalidApiKey("no", headers={"WWW-Authenticate": "Bearer"})
        return Caller()

    install(app, settings, authenticate)

    app.register_blueprint(core())
    app.register_blueprint(a_plugin())
    return app


def client(**tables: Any) -> Client:
    return make_app(Settings.model_validate(tables)).test_client()


LOCKED = {"auth": {"require_api_key": True}}
KEY = {"Authorization": "Bearer right"}


async def code(response: Any) -> tuple[int, str | None]:
    body = await response.get_json()
    return response.status_code, body["error"]["code"]


class TestKeys:
    @pytest.mark.parametrize("path", ["/who", "/stream", "/broken", "/plugin", "/docs", "/nowhere"])
    async def test_every_route_asks(self, path: str) -> None:
        response = await client(**LOCKED).get(path)
        assert await code(response) == (401, "invalid_api_key")
        assert response.headers["WWW-Authenticate"] == "Bearer"

    @pytest.mark.parametrize("method", ["DELETE", "OPTIONS", "HEAD", "PUT"])
    async def test_every_method_asks(self, method: str) -> None:
        response = await client(**LOCKED).open("/who", method=method, json=None)
        assert response.status_code == 401

    async def test_key_lets_through(self) -> None:
        caller = client(**LOCKED)
        assert await (await caller.get("/who", headers=KEY)).get_data() == b"laptop"
        assert await (await caller.get("/plugin", headers=KEY)).get_data() == b"plugin"
        assert (await caller.get("/nowhere", headers=KEY)).status_code == 404
        assert (await caller.delete("/who", headers=KEY)).status_code == 405

    async def test_open_route_does_not_ask(self) -> None:
        response = await client(**LOCKED).get("/health", headers={"Authorization": "Bearer wrong"})
        assert await response.get_data() == b"anonymous"

    async def test_wrong_method_on_an_open_route_asks(self) -> None:
        assert (await client(**LOCKED).post("/health")).status_code == 401

    async def test_docs_when_they_need_no_key(self) -> None:
        response = await client(**LOCKED, server={"docs_need_key": False}).get("/docs")
        assert response.status_code == 200

    async def test_no_key_where_none_is_required(self) -> None:
        assert await (await client().get("/who")).get_data() == b"anonymous"
        assert await (await client().get("/who", headers=KEY)).get_data() == b"laptop"

    async def test_auth_gets_lower_case_headers_and_the_address(self) -> None:
        seen: list[Mapping[str, str]] = []
        caller = make_app(Settings(), seen).test_client()
        await caller.get("/who", headers={"X-Thing": "1"}, scope_base={"client": ("10.9.8.7", 1)})
        assert seen[0]["x-thing"] == "1"
        assert seen[0]["address"] == "10.9.8.7"

    async def test_two_keys_in_one_request_are_no_key(self) -> None:
        app = make_app(Settings.model_validate(LOCKED))
        headers = [("Authorization", "Bearer right"), ("Authorization", "Bearer wrong")]
        async with over_asgi(app) as http:
            assert (await http.get("/who", headers=headers[:1])).status_code == 200
            assert (await http.get("/who", headers=headers)).status_code == 401
            assert (await http.get("/who", headers=headers[::-1])).status_code == 401

    async def test_websockets_ask_too(self) -> None:
        caller = client(**LOCKED)
        with pytest.raises(WebsocketResponseError) as caught:
            async with caller.websocket("/socket") as socket:
                await socket.receive()
        assert caught.value.response.status_code == 401
        async with caller.websocket("/socket", headers=KEY) as socket:
            assert await socket.receive() == "laptop"


def over_asgi(app: Quart) -> httpx.AsyncClient:
    transport = httpx.ASGITransport(cast(Any, app), client=("127.0.0.1", 1))
    return httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:1234")


class TestHost:
    @pytest.mark.parametrize(
        "host",
        [
            "127.0.0.1",
            "127.0.0.1:1234",
            "127.0.0.1:9999",
            "localhost",
            "LocalHost:1234",
            "localhost.:1234",
            "[::1]:1234",
            "127.0.0.2",
        ],
    )
    async def test_loopback_answers_to_its_names(self, host: str) -> None:
        assert (await client().get("/who", headers={"Host": host})).status_code == 200

    @pytest.mark.parametrize(
        "host",
        [
            "evil.example",
            "evil.example:1234",
            "127.0.0.1.evil.example",
            "localhost.evil.example",
            "evil.example#127.0.0.1",
            "evil@127.0.0.1",
            "127.0.0.1@evil.example",
            "192.168.1.5",
            "8.8.8.8:1234",
            "0.0.0.0:1234",
            "[::]:1234",
            "somewhere",
            "localhost:port",
            ":1234",
        ],
    )
    @pytest.mark.parametrize("tables", [{}, LOCKED, {"cors": {"allow_origins": ["*"]}}])
    async def test_loopback_refuses_others(self, host: str, tables: dict[str, Any]) -> None:
        response = await client(**tables).get("/who", headers={"Host": host, **KEY})
        assert await code(response) == (403, "forbidden")

    async def test_open_routes_refuse_others_too(self) -> None:
        response = await client().get("/health", headers={"Host": "evil.example"})
        assert response.status_code == 403

    async def test_no_host_at_all(self) -> None:
        app = make_app(Settings())
        async with over_asgi(app) as http:
            asked = http.build_request("GET", "/who")
            del asked.headers["Host"]
            assert (await http.send(asked)).status_code == 200
            asked.headers["Host"] = ""  # what Quart makes of HTTP/1.0
            assert (await http.send(asked)).status_code == 200
            asked.headers["Origin"] = "http://evil.example"
            assert (await http.send(asked)).status_code == 403

    async def test_websockets_refuse_others(self) -> None:
        with pytest.raises(WebsocketResponseError) as caught:
            async with client().websocket("/socket", headers={"Host": "evil.example"}) as socket:
                await socket.receive()
        assert caught.value.response.status_code == 403

    @pytest.mark.parametrize(
        ("host", "passes"),
        [
            ("192.168.1.5:1234", True),
            ("[fe80::1]:1234", True),
            ("127.0.0.1:1234", True),
            ("localhost", True),
            ("hookline:1234", True),
            ("desk.local:1234", True),
            ("llm.home.arpa", True),
            ("llm.internal", True),
            ("LLM.Example.ORG", True),
            ("evil.example", False),
            ("192.168.1.5.evil.example", False),
            ("local", True),
            ("evillocal.example", False),
            ("", False),
        ],
    )
    def test_network_without_keys(self, host: str, passes: bool) -> None:
        tables = {
            "server": {"host": "llm.example.org"},
            "auth": {"allow_no_key_on_network": True},
        }
        assert ours(host, Settings.model_validate(tables)) is passes

    def test_network_with_keys_passes_every_name(self) -> None:
        settings = Settings.model_validate({"server": {"host": ANYWHERE}, **LOCKED})
        assert ours("llm.example.org", settings)
        assert not ours("no host", settings)
        assert not ours("[::1", settings)


class TestOrigin:
    @pytest.mark.parametrize(
        "origin",
        [
            PAGE,
            "http://localhost:3000",
            "http://localhost",
            "http://127.0.0.1:1234",
            "null",
            "file://",
            "chrome-extension://abc",
            "http://localhost:1234.evil.example",
            "",
        ],
    )
    async def test_foreign_pages_are_refused(self, origin: str) -> None:
        headers = {"Host": "localhost:1234", "Origin": origin}
        caller = client()
        for path in ("/who", "/health", "/plugin", "/nowhere"):
            response = await caller.get(path, headers=headers)
            assert await code(response) == (403, "forbidden")
            assert "Access-Control-Allow-Origin" not in response.headers

    @pytest.mark.parametrize(
        ("origin", "host"),
        [
            ("http://localhost:1234", "localhost:1234"),
            ("http://127.0.0.1", "127.0.0.1"),
            ("http://127.0.0.1", "127.0.0.1:80"),
            ("https://127.0.0.1", "127.0.0.1:443"),
            ("http://[::1]:1234", "[::1]:1234"),
            ("http://localhost:1234", "LOCALHOST:1234"),
        ],
    )
    async def test_own_pages_pass(self, origin: str, host: str) -> None:
        response = await client().get("/who", headers={"Origin": origin, "Host": host})
        assert response.status_code == 200

    async def test_rebound_page_is_no_own_page(self) -> None:
        headers = {"Origin": "http://evil.example:1234", "Host": "evil.example:1234"}
        assert (await client().get("/who", headers=headers)).status_code == 403

    async def test_preflight_is_refused_without_cors(self) -> None:
        assert (await preflight(client(), PAGE)).status_code == 403

    async def test_websockets_of_foreign_pages_are_refused(self) -> None:
        with pytest.raises(WebsocketResponseError) as caught:
            async with client().websocket("/socket", headers={"Origin": PAGE}) as socket:
                await socket.receive()
        assert caught.value.response.status_code == 403


async def preflight(caller: Client, origin: str, path: str = "/who") -> Any:
    headers = {
        "Origin": origin,
        "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": "authorization, content-type",
    }
    return await caller.options(path, headers=headers)


def with_cors(*origins: str, **tables: Any) -> Client:
    return client(cors={"allow_origins": list(origins)}, **tables)


class TestCors:
    @pytest.mark.parametrize("path", ["/who", "/plugin", "/files", "/nowhere"])
    async def test_preflight_needs_no_key(self, path: str) -> None:
        response = await preflight(with_cors(PAGE, **LOCKED), PAGE, path)
        assert response.status_code == 204
        assert response.headers["Access-Control-Allow-Origin"] == PAGE
        assert "POST" in response.headers["Access-Control-Allow-Methods"]
        allowed = response.headers["Access-Control-Allow-Headers"].lower()
        assert {"authorization", "content-type"} <= set(allowed.replace(" ", "").split(","))
        assert response.headers["Access-Control-Max-Age"] == "600"

    async def test_plain_options_is_no_preflight(self) -> None:
        response = await with_cors(PAGE, **LOCKED).options("/who", headers={"Origin": PAGE})
        assert response.status_code == 401

    @pytest.mark.parametrize(
        ("path", "status"),
        [("/who", 200), ("/stream", 200), ("/nowhere", 404), ("/broken", 500), ("/plugin", 200)],
    )
    async def test_headers_are_on_answers_and_errors(self, path: str, status: int) -> None:
        response = await with_cors(PAGE).get(path, headers={"Origin": PAGE})
        assert response.status_code == status
        self.check(response)

    async def test_headers_are_on_refusals_of_guards_and_bodies(self) -> None:
        caller = with_cors(PAGE, **LOCKED)
        origin = {"Origin": PAGE}
        text = {**origin, **KEY, "Content-Type": "text/plain"}
        json = {**origin, **KEY, "Content-Type": "application/json"}
        refusals = {
            401: caller.get("/who", headers=origin),
            403: caller.get("/who", headers={**origin, "Host": "evil.example"}),
            405: caller.delete("/who", headers={**origin, **KEY}),
            413: caller.post("/who", headers=json, data=b"1" * 2000),
            415: caller.post("/who", headers=text, data=b"{}"),
        }
        for status, asking in refusals.items():
            response = await asking
            assert response.status_code == status
            self.check(response)

    def check(self, response: Any) -> None:
        assert response.headers["Access-Control-Allow-Origin"] == PAGE
        assert "Origin" in response.headers["Vary"]
        exposed = {
            name.strip() for name in response.headers["Access-Control-Expose-Headers"].split(",")
        }
        assert exposed == set(EXPOSED_HEADERS)
        assert "Access-Control-Allow-Credentials" not in response.headers

    async def test_any_origin(self) -> None:
        response = await with_cors("*").get("/who", headers={"Origin": "http://any.example"})
        assert response.headers["Access-Control-Allow-Origin"] == "*"
        assert (await with_cors("*").get("/who", headers={"Origin": "null"})).status_code == 200

    @pytest.mark.parametrize(
        "origin", ["https://other.example", "http://page.example", f"{PAGE}:8443", "null"]
    )
    async def test_only_listed_origins_pass(self, origin: str) -> None:
        for response in (
            await with_cors(PAGE).get("/who", headers={"Origin": origin}),
            await preflight(with_cors(PAGE), origin),
        ):
            assert response.status_code == 403
            assert "Access-Control-Allow-Origin" not in response.headers

    async def test_programs_send_no_origin(self) -> None:
        assert (await with_cors(PAGE).get("/who")).status_code == 200

    async def test_websockets_of_programs_and_listed_pages_only(self) -> None:
        caller = with_cors(PAGE)
        for headers in ({}, {"Origin": PAGE}):
            async with caller.websocket("/socket", headers=headers) as socket:
                assert await socket.receive() == "anonymous"
        with pytest.raises(WebsocketResponseError) as caught:
            async with caller.websocket("/socket", headers={"Origin": "null"}) as socket:
                await socket.receive()
        assert caught.value.response.status_code == 403

    async def test_own_pages_still_pass(self) -> None:
        headers = {"Origin": "http://localhost:1234", "Host": "localhost:1234"}
        assert (await with_cors(PAGE).get("/who", headers=headers)).status_code == 200

    @pytest.mark.parametrize("written", ["https://Page.Example", "https://page.example/"])
    async def test_origins_are_read_as_meant(self, written: str) -> None:
        response = await with_cors(written).get("/who", headers={"Origin": PAGE})
        assert response.headers["Access-Control-Allow-Origin"] == PAGE

    @pytest.mark.parametrize("origin", ["app://desk.notes", "file://", "null"])
    async def test_pages_of_desktop_applications(self, origin: str) -> None:
        assert (await with_cors(origin).get("/who", headers={"Origin": origin})).status_code == 200

    @pytest.mark.parametrize("origin", ["page.example", "https://page.example/path", "", "**"])
    def test_what_is_no_origin_stops_the_start(self, origin: str) -> None:
        with pytest.raises(ConfigError, match="allow_origins"):
            with_cors(origin)


class TestBody:
    @pytest.mark.parametrize(
        "content_type",
        ["application/json", "application/json; charset=utf-8", "Application/JSON"],
    )
    async def test_json_passes(self, content_type: str) -> None:
        response = await client().post("/who", data=b"{}", headers={"Content-Type": content_type})
        assert response.status_code == 200

    @pytest.mark.parametrize(
        "content_type",
        [
            "text/plain",
            "application/x-www-form-urlencoded",
            "multipart/form-data; boundary=x",
            "text/plain; application/json",
            "application/jsonp",
            "",
        ],
    )
    @pytest.mark.parametrize("path", ["/who", "/plugin"])
    async def test_everything_else_is_refused(self, path: str, content_type: str) -> None:
        response = await client().post(path, data=b"{}", headers={"Content-Type": content_type})
        assert await code(response) == (415, "unsupported_media_type")

    async def test_body_without_a_type(self) -> None:
        async with over_asgi(make_app(Settings())) as http:
            response = await http.post("/who", content=b"{}")
        assert response.status_code == 415
        assert "is missing" in response.json()["error"]["message"]

    async def test_body_without_a_length(self) -> None:
        async def chunks() -> AsyncIterator[bytes]:
            yield b"{}"

        async with over_asgi(make_app(Settings())) as http:
            assert (await http.post("/who", content=chunks())).status_code == 415
            headers = {"Content-Type": "application/json"}
            response = await http.post("/who", content=chunks(), headers=headers)
            assert response.status_code == 200

    async def test_http_2_announces_no_body(self) -> None:
        caller = client()
        async with caller.request("/who", method="POST", http_version="2") as connection:
            await connection.send(b"{}")
            await connection.send_complete()
        assert (await connection.as_response()).status_code == 415

    async def test_no_body_needs_no_type(self) -> None:
        assert (await client().post("/who")).status_code == 200
        assert (await client().get("/who")).status_code == 200

    async def test_route_may_accept_more(self) -> None:
        headers = {"Content-Type": "multipart/form-data; boundary=x"}
        body = b'--x\r\nContent-Disposition: form-data; name="a"\r\n\r\n1\r\n--x--\r\n'
        response = await client().post("/files", data=body, headers=headers)
        assert await response.get_data() == b"[('a', '1')]"
        headers = {"Content-Type": "text/plain"}
        response = await client().post("/files", data=b"a", headers=headers)
        body = await response.get_json()
        assert response.status_code == 415
        assert "application/json or multipart/form-data" in body["error"]["message"]

    async def test_unknown_paths_say_that_they_are_unknown(self) -> None:
        headers = {"Content-Type": "text/plain"}
        response = await client().post("/nowhere", data=b"a", headers=headers)
        assert response.status_code == 404

    async def test_key_is_asked_for_first(self) -> None:
        headers = {"Content-Type": "text/plain"}
        response = await client(**LOCKED).post("/who", data=b"a", headers=headers)
        assert response.status_code == 401


class APlugin:
    @hookimpl
    def routes(self) -> Blueprint:
        return a_plugin()


class TestWholeServer:
    """The real application with a plugin's routes, asked without a key."""

    def make(self, data_dir: Path, **server: Any) -> Quart:
        tables = {"data_dir": data_dir, "plugins": [], "server": server, **LOCKED}
        return create_app(Settings.model_validate(tables), plugins={"a": APlugin()})

    async def open_routes(self, app: Quart) -> set[str]:
        """What answers something else than 401 without a key."""
        caller, found = app.test_client(), set()
        async with app.extensions["hookline"].store:
            for rule in app.url_map.iter_rules():
                methods = (rule.methods or set()) - {"HEAD", "OPTIONS"}
                path = re.sub("<[^>]*>", "x", rule.rule)
                for method in methods if not rule.websocket else ():
                    response = await caller.open(path, method=method, json=None)
                    if response.status_code != 401:
                        found.add(f"{method} {rule.rule}")
        return found

    async def test_only_these_need_no_key(self, tmp_path: Path) -> None:
        assert await self.open_routes(self.make(tmp_path)) == {"GET /health"}

    async def test_documentation_may_be_open(self, tmp_path: Path) -> None:
        app = self.make(tmp_path, docs_need_key=False)
        assert await self.open_routes(app) == {"GET /health", "GET /docs", "GET /openapi.json"}

    async def test_routes_of_core_and_plugins_are_among_them(self, tmp_path: Path) -> None:
        rules = {rule.rule for rule in self.make(tmp_path).url_map.iter_rules()}
        assert {"/v1/chat/completions", "/v1/models", "/metrics", "/plugin"} <= rules

    async def test_stored_key_opens_a_plugins_route_until_it_is_revoked(
        self, tmp_path: Path
    ) -> None:
        app = self.make(tmp_path)
        key, stored = new_key("laptop", datetime.now(UTC))
        headers = {"Authorization": f"Bearer {key}"}
        async with app.extensions["hookline"].store, Store(tmp_path) as other:
            await other.add_key(stored)
            assert (await app.test_client().get("/plugin", headers=headers)).status_code == 200
            await other.revoke_key("laptop", datetime.now(UTC))
            assert (await app.test_client().get("/plugin", headers=headers)).status_code == 401
