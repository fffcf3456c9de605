"""What can be told of a plugin from its source alone."""

from __future__ import annotations

import sys
from pathlib import Path
from textwrap import dedent

import pytest

from hookline.contract import IMPLEMENTATION, SPEC, marked
from hookline.outline import Outline, missing_modules, outline_of
from hookline.plugin_sources import installed
from hookline.python_source import Sources, Unreadable


def outline(folder: Path, **files: str) -> Outline:
    """The outline of class ``Plugin`` in the package ``outlined``, whose files these are."""
    package = folder / "outlined"
    package.mkdir(exist_ok=True)
    for name, text in {"__init__": "", **files}.items():
        (package / f"{name}.py").write_text(dedent(text))
    source = Sources().find("outlined")
    assert source is not None
    kind = source.class_of("Plugin")
    assert kind is not None
    return outline_of(kind)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.syspath_prepend(tmp_path)
    return tmp_path


PLUGIN = '''
    import asyncio
    from contextlib import asynccontextmanager
    from hookline import hookimpl as implements
    from outlined.settings import Fields, Settings
    from .base import Base

    raise RuntimeError("this must not run")

    class Plugin(Base):
        """Does something."""
        settings_model = Settings
        request_fields = Fields
        requires = frozenset({"constraint"})
        extras: set = {"fast"}
        after = {"transform": ["websearch"]}
        computed = 1 + asyncio.LATER

        @implements
        async def transform(self, exchange): ...

        @implements(optionalhook=True)
        def tool_formats(self): ...

        @implements
        @asynccontextmanager
        async def lifespan(self, server): yield

        @implements
        @asyncio.something
        def stage(self, *, exchange, job): ...

        def helper(self): ...
'''
SETTINGS = """
    from pydantic import BaseModel, Field

    class Common(BaseModel):
        name: str
        _private: int = 3

    class Settings(Common):
        depth: int = Field(3, ge=1, description="How " "deep.")
        tags: list[str] = Field(default_factory=list)
        plain: bool = False

    class Fields(BaseModel):
        search: bool | str = Field(default=False, description=SAID)
"""
BASE = """
    from hookline import hookimpl, hookspec

    class Specs:
        @hookspec
        def colours(self, thing): ...

    class Base:
        hookspecs = Specs
        requires = ()
        @hookimpl
        async def settle(self, error): ...
        @hookimpl
        async def transform(self): ...
"""


def test_it_follows_imports_and_bases_and_runs_nothing(folder: Path) -> None:
    found = outline(folder, __init__="from .plugin import Plugin", plugin=PLUGIN, settings=SETTINGS,
                    base=BASE)  # fmt: skip
    assert not [name for name in sys.modules if name.startswith("outlined")]
    assert found.description == "Does something."
    assert found.about.requires == {"constraint"}
    assert found.about.extras == {"fast"}
    assert found.about.after == {"transform": frozenset({"websearch"})}
    assert [*found.hooks] == ["transform", "tool_formats", "lifespan", "stage", "settle"]
    colours = {name: method.is_async for name, method in found.hooks.items()}
    assert colours == {
        "transform": True,
        "tool_formats": False,
        "lifespan": False,
        "stage": None,
        "settle": True,
    }
    assert found.hooks["transform"].arguments == ("exchange",)
    assert found.hooks["stage"].arguments == ("exchange", "job")
    assert found.hooks["tool_formats"].options == {"optionalhook"}
    assert found.added["colours"].arguments == ("thing",)


def test_fields_are_told_as_they_are_written(folder: Path) -> None:
    found = outline(folder, __init__=PLUGIN, settings=SETTINGS, base=BASE)
    assert found.settings is not None
    told = {
        name: (field.annotation, field.default, field.description)
        for name, field in found.settings.items()
    }
    assert told == {
        "name": ("str", None, None),
        "depth": ("int", "3", "How deep."),
        "tags": ("list[str]", "list", None),
        "plain": ("bool", "False", None),
    }
    (search,) = found.fields.values()
    assert (search.default, search.description) == ("False", None)


@pytest.mark.parametrize("text", ["class Plugin(:", "x = '\\udc80'", "é = \xe9\0"])
def test_what_is_no_python_is_unreadable(folder: Path, text: str) -> None:
    (folder / "nonsense.py").write_bytes(text.encode("utf-8", "surrogatepass")[:20] + b"\xff(")
    with pytest.raises(Unreadable, match=r"nonsense\.py"):
        Sources().find("nonsense")


def test_imports_in_a_circle_end(folder: Path) -> None:
    (folder / "one.py").write_text("from other import Plugin")
    (folder / "other.py").write_text("from one import Plugin")
    source = Sources().find("one")
    assert source is not None
    assert source.class_of("Plugin") is None


def test_modules_without_source_are_not_found(folder: Path) -> None:
    assert Sources().find("there_is_no_such_module") is None
    assert Sources().find("math") is None


def test_missing_modules_are_those_that_importing_needs(folder: Path) -> None:
    outline(
        folder,
        __init__="""
            from typing import TYPE_CHECKING
            import json, missing_one.inner
            from .inner import helper
            if TYPE_CHECKING:
                import missing_for_types
            try:
                import missing_but_guarded
            except ImportError:
                pass
            def later():
                import missing_until_later
            class Plugin: ...
        """,
        inner="from missing_two import x\nimport pydantic\ndef helper(): ...",
    )
    source = Sources().find("outlined")
    assert source is not None
    assert sorted(missing_modules(source)) == ["missing_one", "missing_two"]


BUILT_IN = [name for name, source in installed().items() if source.built_in]


@pytest.mark.parametrize("name", BUILT_IN)
def test_the_built_in_plugins_are_read_as_they_are(name: str) -> None:
    source = installed()[name]
    (_, read), kind = source.read(), source.load()
    assert read is not None
    told = outline_of(read)
    real = marked(kind, IMPLEMENTATION)
    assert told.hooks.keys() == real.keys()
    for hook, method in told.hooks.items():
        assert method.arguments == real[hook].arguments
        assert method.is_async in (None, real[hook].is_async)
    assert told.added.keys() == marked(getattr(kind, "hookspecs", None), SPEC).keys()
    for attribute, fields in (("request_fields", told.fields), ("settings_model", told.settings)):
        model = getattr(kind, attribute, None)
        assert [*(fields or ())] == [*(model.model_fields if model else ())]
