"""Where plugins come from: single files of a folder, beside those that are installed."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest

from hookline.config import Settings, load_settings
from hookline.discovery import load_plugins
from hookline.errors import ConfigError
from hookline.plugin import Plugin
from hookline.survey import survey

FINE = """
from dataclasses import dataclass
from hookline import hookimpl

@dataclass
class Greets:
    said: str = "hello"

    @hookimpl
    def opening_fields(self):
        return {"greeting": self.said}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "plugins"
    path.mkdir()
    return path


def loaded(folder: Path, **settings: Any) -> dict[str, Plugin]:
    return load_plugins(Settings(plugin_dir=folder, **settings)).found


def reason(plugin: Plugin) -> str:
    assert plugin.state == "failed"
    return plugin.reason or ""


async def test_a_file_is_a_plugin(
    folder: Path, in_process: Callable[..., AbstractAsyncContextManager[Any]]
) -> None:
    (folder / "greets.py").write_text(FINE)
    (folder / "_helper.py").write_text("raise RuntimeError")
    (folder / "notes.txt").write_text("no plugin")
    async with in_process(settings={"plugin_dir": folder, "plugins": ["greets"]}) as server:
        assert (await server.chat()).json()["greeting"] == "hello"
        health = (await server.client.get("/health")).json()
    (told,) = [plugin for plugin in health["plugins"] if plugin["name"] == "greets"]
    assert (told["state"], told["hooks"]) == ("active", ["opening_fields"])


def test_files_are_on_like_the_built_in_ones(folder: Path) -> None:
    (folder / "greets.py").write_text(FINE)
    assert loaded(folder)["greets"].state == "active"
    assert loaded(folder, plugins=["*"])["greets"].state == "active"
    assert loaded(folder, plugins=["-greets"])["greets"].state == "off"
    assert loaded(folder, plugins=[])["greets"].state == "off"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("class Plugin(:", "SyntaxError"),
        ("import there_is_no_such_module" + FINE, "there_is_no_such_module"),
        ("class Plugin: ...", "no class with a method marked hookimpl"),
        (FINE + FINE.replace("Greets", "Second"), "several of its classes have hooks"),
        (FINE + "raise SystemExit(3)", "SystemExit: 3"),
        (FINE.replace("self)", "self, wrong)"), "takes 'wrong'"),
    ],
)
def test_a_broken_file_is_named_and_harms_nothing(folder: Path, text: str, words: str) -> None:
    (folder / "broken.py").write_text(text)
    (folder / "greets.py").write_text(FINE)
    found = loaded(folder)
    assert words in reason(found["broken"])
    assert found["greets"].state == "active"


def test_of_a_file_that_fails_nothing_stays(folder: Path) -> None:
    (folder / "leaves_nothing.py").write_text(FINE + "raise RuntimeError")
    loaded(folder)
    assert "hookline_plugin_file_leaves_nothing" not in sys.modules


def test_of_several_classes_the_one_called_plugin_is_meant(folder: Path) -> None:
    (folder / "both.py").write_text(FINE + FINE.replace("Greets", "Plugin"))
    found = loaded(folder)["both"]
    assert type(found.instance).__name__ == "Plugin"
    assert survey(Settings(plugin_dir=folder)).plugins["both"].plugin.state == "active"


def test_names_that_cannot_be_are_told(folder: Path) -> None:
    (folder / "My Plugin.py").write_text(FINE)
    (folder / "thinking.py").write_text(FINE)
    found = loaded(folder)
    assert "small letters" in reason(found["My Plugin"])
    assert "'thinking' too; rename" in reason(found["thinking.py"])
    assert found["thinking"].distribution == "hookline"


def test_settings_and_wishes_are_as_in_any_plugin(folder: Path) -> None:
    (folder / "polite.py").write_text(
        "from pydantic import BaseModel\n"
        "from hookline import hookimpl\n"
        "class PoliteSettings(BaseModel):\n"
        "    word: str = 'please'\n"
        "class Polite:\n"
        "    settings_model = PoliteSettings\n"
        "    before = {'greets'}\n"
        "    def __init__(self, settings: PoliteSettings): ...\n"
        "    @hookimpl\n"
        "    def opening_fields(self): ...\n"
    )
    (folder / "greets.py").write_text(FINE)
    plugins = load_plugins(Settings(plugin_dir=folder, plugin={"polite": {"word": "thanks"}}))
    names = [call.plugin.name for call in plugins.calls("opening_fields")]
    assert names.index("polite") < names.index("greets")
    bad = loaded(folder, plugin={"polite": {"wrod": "thanks"}})
    assert "wrod" in reason(bad["polite"])


def test_the_folder_beside_the_configuration_is_the_default(folder: Path) -> None:
    config = folder.parent / "hookline.toml"
    config.write_text("")
    assert load_settings(config, {}, {}).settings.plugin_dir == folder
    folder.rmdir()
    assert load_settings(config, {}, {}).settings.plugin_dir is None
    config.write_text('plugin_dir = "mine"')
    with pytest.raises(ConfigError, match=r"plugin_dir: .*mine is no folder"):
        load_plugins(load_settings(config, {}, {}).settings)


# Which are on


def test_a_minus_takes_one_out(folder: Path) -> None:
    (folder / "greets.py").write_text(FINE)
    states = {name: plugin.state for name, plugin in loaded(folder, plugins=["-tools"]).items()}
    assert (states["tools"], states["greets"]) == ("off", "active")
    with pytest.raises(ConfigError, match="no plugin 'tolls'"):
        loaded(folder, plugins=["*", "-tolls"])
    with pytest.raises(ConfigError, match="'tools' twice"):
        loaded(folder, plugins=["tools", "-tools"])
