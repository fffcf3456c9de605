"""The application: the core's routes and those of plugins."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from quart import Blueprint

from hookline import PluginError, hookimpl
from hookline.app import app_of
from hookline.config import Settings
from hookline.kernel import Kernel


class Routes:
    """A plugin with routes, in a blueprint called like it."""

    def __init__(self, *paths: str, name: str = "mine") -> None:
        self.paths, self.name = paths, name

    @hookimpl
    def routes(self) -> Blueprint:
        blueprint = Blueprint(self.name, __name__)
        for number, path in enumerate(self.paths):
            blueprint.get(path, endpoint=str(number))(self.answer)
        return blueprint

    async def answer(self, **_: str) -> Any:
        return "mine"


class Failing(Routes):
    async def answer(self, **_: str) -> Any:
        raise KeyError("no key")


class Unusable(Routes):
    async def answer(self, **_: str) -> Any:
        return {1, 2}


def kernel(tmp_path: Path, *paths: str, **others: Routes) -> Kernel:
    plugins = {"mine": Routes(*paths), **others}
    return Kernel(Settings(data_dir=tmp_path, plugins=[]), plugins=plugins)


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("v1/mine", "must start with a slash"),
        ("/v1/models", "GET /v1/models is there already, from Hookline"),
    ],
)
def test_routes_that_cannot_be_used_are_the_plugin_s_own_fault(
    tmp_path: Path, path: str, words: str
) -> None:
    one = kernel(tmp_path, "/v1/first", path)
    app = app_of(one)
    plugin = one.plugins.found["mine"]
    assert plugin.state == "failed"
    assert words in (plugin.reason or "")
    assert "/v1/first" not in {rule.rule for rule in app.url_map.iter_rules()}


def test_one_that_is_put_off_pushes_nobody_out(tmp_path: Path) -> None:
    loser = Routes("/v1/free", "/v1/mine/<name>", name="loser")
    late = Routes("/v1/free", name="late")
    one = kernel(tmp_path, "/v1/mine/<id>", loser=loser, late=late)
    app_of(one)
    assert one.plugins.found["late"].state == "active"
    reason = one.plugins.found["loser"].reason or ""
    assert "GET /v1/mine/<> is there already, from the plugin 'mine'" in reason


def test_of_two_blueprints_with_one_name_both_plugins_are_told(tmp_path: Path) -> None:
    one = kernel(tmp_path, "/v1/mine", other=Routes("/v1/other"))
    app_of(one)
    reason = one.plugins.found["other"].reason or ""
    assert "a blueprint of the plugin 'mine' is called 'mine' too" in reason


@pytest.mark.parametrize("kind", [Failing, Unusable])
async def test_what_fails_in_a_route_is_its_plugin_s(
    tmp_path: Path, kind: type[Routes], caplog: pytest.LogCaptureFixture
) -> None:
    one = kernel(tmp_path, "/v1/mine", failing=kind("/v1/fails", name="failing"))
    response = await app_of(one).test_client().get("/v1/fails")
    assert response.status_code == 500
    error = (await response.get_json())["error"]
    assert (error["type"], error["code"]) == ("server_error", "plugin_failed")
    assert "'failing'" in error["message"]
    plugin = one.plugins.found["failing"]
    assert (plugin.failures, plugin.breaker.state) == (1, "closed")
    assert "plugin failing failed in its route GET /v1/fails" in caplog.text
    assert b'plugin="failing"' in one.metrics.text()


def test_an_essential_plugin_s_routes_must_be_usable(tmp_path: Path) -> None:
    one = kernel(tmp_path, "/v1/models")
    one.plugins.found["mine"].essential = True
    with pytest.raises(PluginError, match="mine"):
        app_of(one)


def test_routes_of_plugins_are_served(tmp_path: Path) -> None:
    app = app_of(kernel(tmp_path, "/v1/mine"))
    assert "/v1/mine" in {rule.rule for rule in app.url_map.iter_rules()}
