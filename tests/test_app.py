"""The application: the core's routes and those of plugins."""

from __future__ import annotations

from pathlib import Path

import pytest
from quart import Blueprint

from hookline import PluginError, hookimpl
from hookline.app import app_of
from hookline.config import Settings
from hookline.kernel import Kernel


class Routes:
    """A plugin with one route."""

    def __init__(self, path: str) -> None:
        self.path = path

    @hookimpl
    def routes(self) -> Blueprint:
        blueprint = Blueprint("mine", __name__)
        blueprint.get(self.path)(self.answer)
        return blueprint

    async def answer(self) -> str:
        return "mine"


def kernel(tmp_path: Path, path: str) -> Kernel:
    return Kernel(Settings(data_dir=tmp_path, plugins=[]), plugins={"mine": Routes(path)})


@pytest.mark.parametrize(
    ("path", "words"),
    [("v1/mine", "must start with a slash"), ("/v1/models", "GET /v1/models is there already")],
)
def test_routes_that_cannot_be_used_are_the_plugin_s_own_fault(
    tmp_path: Path, path: str, words: str
) -> None:
    one = kernel(tmp_path, path)
    app_of(one)
    plugin = one.plugins.found["mine"]
    assert plugin.state == "failed"
    assert words in (plugin.reason or "")


def test_an_essential_plugin_s_routes_must_be_usable(tmp_path: Path) -> None:
    one = kernel(tmp_path, "/v1/models")
    one.plugins.found["mine"].essential = True
    with pytest.raises(PluginError, match="mine"):
        app_of(one)


def test_routes_of_plugins_are_served(tmp_path: Path) -> None:
    app = app_of(kernel(tmp_path, "/v1/mine"))
    assert "/v1/mine" in {rule.rule for rule in app.url_map.iter_rules()}
