"""What every plugin must do, done by this one."""

from __future__ import annotations

from hookline.testing import PluginContractTests
from hookline_vision import Vision


class TestContract(PluginContractTests):
    plugin = Vision
    bad_settings = [{"fallback": "guess"}, {"decoders": 0}, {"max_images": 17}]
