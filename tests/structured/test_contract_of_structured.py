"""What every plugin must do, done by this one."""

from __future__ import annotations

from hookline.testing import PluginContractTests
from hookline_structured import Structured


class TestContract(PluginContractTests):
    plugin = Structured
    heavy_imports = ("numpy",)
    bad_settings = [{"engine": "xgrammar"}, {"compile_seconds": 0}, {"cache_size": 0}]
    request = {"response_format": {"type": "regex", "pattern": "[a-z]{3}"}}
    said = ("o", "n", "e")
