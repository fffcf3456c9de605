"""What plugins say about themselves, and when they cannot work here."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hookline.about import About, missing_for
from hookline.hookspecs import API_VERSION


def about(**attributes: Any) -> About:
    return About.of(type("Plugin", (), attributes))


def test_everything_may_be_left_out() -> None:
    assert about() == About()
    assert about().problem("hookline") is None


@pytest.mark.parametrize(
    ("attributes", "words"),
    [
        ({"requires": "constraint"}, "'requires' must be a set of names, not 'constraint'"),
        ({"extras": 3}, "'extras' must be a set of names"),
        ({"provides": [1]}, "'provides' must be a set of names"),
        ({"before": {"transform": "x"}}, "'before' must be a set of names"),
        ({"api": "one"}, "'api' must be a range such as '>=1.0,<2', not 'one'"),
        ({"api": 1.0}, "'api' must be a range"),
    ],
)
def test_what_is_written_wrongly_is_told(attributes: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        about(**attributes)


def test_the_api_version_must_be_in_the_range() -> None:
    assert about(api=f"=={API_VERSION}").problem("it") is None
    assert about(api=">=1.0,<2").problem("it") is None
    problem = about(api=">=99").problem("hookline-weather")
    assert problem is not None
    assert f"version >=99 of the hook API, and this is {API_VERSION}" in problem
    assert "another version of hookline-weather" in problem


@pytest.fixture
def distribution(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A package with an extra of which a part is missing."""
    info = tmp_path / "hookline_weather-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: hookline-weather\nVersion: 1.0\n"
        "Provides-Extra: radar\nProvides-Extra: snow\n"
        "Requires-Dist: pydantic\n"
        "Requires-Dist: radar-that-is-missing>=2; extra == 'radar'\n"
        "Requires-Dist: nothing-on-this-machine; sys_platform == 'amiga'\n"
        "Requires-Dist: hookline-weather[radar]; extra == 'snow'\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    return "hookline-weather"


def test_a_missing_extra_says_what_to_install(distribution: str) -> None:
    assert about().problem(distribution) is None
    problem = about(extras={"radar"}).problem(distribution)
    assert problem is not None
    assert "needs 'radar-that-is-missing>=2'" in problem
    assert "pip install 'hookline-weather[radar]'" in problem


def test_what_is_missing_is_told_by_extras(distribution: str) -> None:
    assert [*missing_for(distribution)] == []
    assert [*missing_for(distribution, {"radar"})] == ["radar-that-is-missing>=2"]
    assert [*missing_for("there-is-no-such-package")] == []
