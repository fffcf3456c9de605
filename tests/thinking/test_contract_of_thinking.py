"""What every plugin must do, done by this one."""

from __future__ import annotations

from hookline.testing import PluginContractTests
from hookline_thinking import Thinking


class TestContract(PluginContractTests):
    plugin = Thinking
    heavy_imports = ("numpy",)
    settings = {"force": True}
    bad_settings = [{"budgets": {"low": 0}}, {"begin": ""}]
    request = {"enable_thinking": True}
    said = ("Hm", ".", "</think>", "Yes", ".")
