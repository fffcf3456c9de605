"""What every plugin must do, done by this one."""

from __future__ import annotations

from hookline.testing import PluginContractTests
from hookline_knowledge import Knowledge


class TestContract(PluginContractTests):
    plugin = Knowledge
    heavy_imports = ("numpy",)
    bad_settings = [{"floor": 2}, {"chunk_tokens": 20}, {"chat": {"passages": 0}}, {"embedder": ""}]
    request = {"knowledge": True}
