"""What every plugin must do, done by this one."""

from __future__ import annotations

from typing import ClassVar

from hookline.testing import PluginContractTests
from hookline_websearch import WebSearch


class TestContract(PluginContractTests):
    plugin = WebSearch
    settings: ClassVar = {"searxng_url": "http://127.0.0.1:1", "browser": False}
    bad_settings: ClassVar = [{"depth": "endless"}, {"quick": {"queries": 0}}, {"providers": []}]
    request: ClassVar = {"web_search": "quick"}
