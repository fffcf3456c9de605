"""``hookline check``: with a plugin that brings the engine, everything else is real."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

Run = Callable[..., Result]
Install = Callable[..., None]

MOUTH = """
    from hookline import hookimpl
    from hookline.engines.scripted import ScriptedEngine, say

    class Plugin:
        @hookimpl
        def create_engine(self, model):
            return ScriptedEngine(say({lines}))
"""


@pytest.fixture
def speaking(run: Run, install: Install) -> Run:
    install("mouth", MOUTH.format(lines="'Hello', ' there', '.'"))
    Path("hookline.toml").write_text('plugins = ["mouth"]\n')
    return run


def test_everything_works(speaking: Run) -> None:
    result = speaking("check")
    lines = [line.split("\t") for line in result.stdout.splitlines()]
    parts = {part: (state, detail) for state, part, detail in lines if state != "off"}
    assert result.exit_code == 0
    assert list(parts) == ["configuration", "plugin mouth", "model", "answer"]
    assert {state for state, _ in parts.values()} == {"ok"}
    assert parts["configuration"][1] == "hookline.toml"
    assert parts["answer"][1].startswith("'Hello there.' in ")


def test_json_is_one_object(speaking: Run) -> None:
    shown = json.loads(speaking("check", "--json").stdout)
    assert shown["ok"] is True
    assert [part["part"] for part in shown["parts"]][-1] == "answer"


@pytest.mark.model
def test_the_default_model_answers(run: Run) -> None:
    environ = {"HOOKLINE_MODEL__CONTEXT": "512", "HOOKLINE_MODEL__PARALLEL": "1"}
    shown = json.loads(run("check", "--json", **environ).stdout)
    parts = {part["part"]: part for part in shown["parts"]}
    assert shown["ok"] is True
    assert parts["model"]["detail"].startswith("smollm2-135m on llamacpp, 512 tokens")
    assert len(parts["answer"]["detail"]) > len("'' in 0.0 s")


def test_a_failed_plugin_fails_the_check_but_not_the_rest(speaking: Run, install: Install) -> None:
    install("broken", "1 / 0")
    install("idle", "")
    Path("hookline.toml").write_text('plugins = ["mouth", "broken"]\n')
    result = speaking("check")
    assert result.exit_code == 1
    assert "failed\tplugin broken\tcannot be loaded: ZeroDivisionError" in result.stdout
    assert "off\tplugin idle\t" in result.stdout
    assert "ok\tanswer\t" in result.stdout


def test_a_model_that_says_nothing_fails(run: Run, install: Install) -> None:
    install("mouth", MOUTH.format(lines=""))
    Path("hookline.toml").write_text('plugins = ["mouth"]\n')
    result = run("check")
    assert result.exit_code == 1
    assert "failed\tanswer\tthe model said nothing" in result.stdout


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("[server]\nprot = 1\n", "failed\tconfiguration\thookline.toml:2: [server] prot: "),
        (
            'plugins = ["moth"]\n',
            "failed\tplugins\thookline.toml:1: 'plugins': There is no plugin 'moth'",
        ),
        ('plugins = []\n[model]\nengine = "none"\n', "failed\tmodel\tNo engine 'none'"),
        ('plugins = []\n[model]\nsource = "./no.gguf"\n', "failed\tmodel\tThere is no model at"),
    ],
)
def test_what_fails_first_is_told_and_ends_the_check(run: Run, text: str, line: str) -> None:
    Path("hookline.toml").write_text(text)
    result = run("check")
    assert result.exit_code == 1
    assert result.stdout.splitlines()[-1].startswith(line)
    assert "Traceback" not in result.output
