"""What every plugin must do, done by this one."""

from __future__ import annotations

from hookline.testing import PluginContractTests
from hookline_tools import Tools

ADD = {"type": "function", "function": {"name": "add", "parameters": {"type": "object"}}}


class TestContract(PluginContractTests):
    plugin = Tools
    extra_plugins = ("structured",)
    bad_settings = [{"longest_text": 0}]
    request = {"tools": [ADD]}
