"""What a plugin raised is told with the place in the plugin."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from hookline.errors import ConfigError
from hookline.faults import described

SOURCE = """
import json
import helping

def calls_the_standard_library():
    json.loads("no JSON")

def calls_a_library():
    helping.break_down()

def says_nothing():
    assert False
"""


@pytest.fixture
def plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    (tmp_path / "faulty_plugin.py").write_text(SOURCE)
    (tmp_path / "helping.py").write_text("def break_down():\n    raise OSError('two\\nlines')\n")
    monkeypatch.syspath_prepend(tmp_path)
    yield importlib.import_module("faulty_plugin")
    for name in ("faulty_plugin", "helping"):
        sys.modules.pop(name)


@pytest.mark.parametrize(
    ("function", "what", "line"),
    [
        ("calls_the_standard_library", "JSONDecodeError: Expecting value: line 1", 6),
        ("calls_a_library", "OSError: two lines", 9),
        ("says_nothing", "AssertionError", 12),
    ],
)
def test_the_place_is_in_the_plugin(
    plugin: ModuleType, function: str, what: str, line: int
) -> None:
    # called from here, this test would be the outermost foreign code on the stack
    result = _raised_by(getattr(plugin, function))
    assert result.startswith(what)
    assert result.endswith(f" ({plugin.__file__}, line {line})")


def _raised_by(function: Any) -> str:
    try:
        function()
    except Exception as error:
        assert error.__traceback__ is not None
        return described(error.with_traceback(error.__traceback__.tb_next))
    raise AssertionError("it raised nothing")


def test_what_is_raised_on_purpose_needs_no_place() -> None:
    assert described(ConfigError("one thing\nand another")) == "one thing; and another"


def test_what_python_itself_refuses() -> None:
    with pytest.raises(SyntaxError) as raised:
        compile("class Plugin(:", "plugin.py", "exec")
    assert described(raised.value) == "plugin.py, line 1: SyntaxError: invalid syntax"
