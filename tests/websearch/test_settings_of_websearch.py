"""What can be set."""

from __future__ import annotations

from typing import Any

import pytest

from hookline.config import validate_plugin_table
from hookline.errors import ConfigError
from hookline_websearch import WebSearchSettings


def settings(table: dict[str, Any]) -> WebSearchSettings:
    return validate_plugin_table("websearch", WebSearchSettings, table)


def test_one_limit_of_a_depth_can_be_set_by_itself() -> None:
    quick = settings({"quick": {"pages": 2}}).limits("quick")
    assert (quick.pages, quick.queries, quick.seconds, quick.rounds) == (2, 1, 1.5, 1)
    assert settings({}).limits("deep").rounds == 2


@pytest.mark.parametrize(
    ("table", "place"),
    [
        ({"depth": "endless"}, "[plugin.websearch] depth"),
        ({"deep": {"pages": -1}}, "[plugin.websearch.deep] pages"),
        ({"deep": {"pagse": 1}}, "[plugin.websearch.deep] pagse"),
        ({"searxng_url": "search.local"}, "[plugin.websearch] searxng_url"),
        ({"language": "../etc"}, "[plugin.websearch] language"),
        ({"providers": []}, "[plugin.websearch] providers"),
    ],
)
def test_settings_that_mean_nothing_are_named(table: dict[str, Any], place: str) -> None:
    with pytest.raises(ConfigError) as raised:
        settings(table)
    assert place in str(raised.value)
