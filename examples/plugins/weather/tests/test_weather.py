"""The weather plugin in a whole server."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hookline import hookimpl
from hookline.testing import LocalServer, PluginContractTests, Refused
from hookline_weather import Weather


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "weather.json"
    path.write_text(json.dumps({"Berlin": "light rain", "Lisbon": "sun"}))
    return path


def test_the_model_is_told(server: LocalServer, chat: Callable[..., Any], file: Path) -> None:
    server.use(Weather, file=file, place="Berlin")
    chat("Do I need an umbrella?", weather=True)
    assert "The weather at Berlin now: light rain." in server.prompts[-1]
    chat("And in Lisbon?", weather="Lisbon")
    assert "The weather at Lisbon now: sun." in server.prompts[-1]
    chat("Hello")
    assert "weather" not in server.prompts[-1]


def test_an_unknown_place(server: LocalServer, chat: Callable[..., Any], file: Path) -> None:
    server.use(Weather, file=file)
    with pytest.raises(Refused) as refused:
        chat("Is it cold?", weather="Atlantis")
    assert refused.value.status == 400
    assert refused.value.error["param"] == "weather"


class Station:
    """Another plugin, which knows one place better."""

    @hookimpl
    def weather_report(self, place: str) -> str | None:
        return "fog" if place == "Berlin" else None


def test_another_plugin_is_asked_first(
    server: LocalServer, chat: Callable[..., Any], file: Path
) -> None:
    server.use(Weather, file=file)
    server.use(Station)
    chat("Is it clear?", weather="Berlin")
    assert "fog" in server.prompts[-1]
    chat("Is it clear?", weather="Lisbon")
    assert "sun" in server.prompts[-1]


class TestContract(PluginContractTests):
    plugin = Weather
    bad_settings = [{"place": 3}]
