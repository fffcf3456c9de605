"""The plugin: makes the engine where the configuration asks for it."""

from __future__ import annotations

from hookline import hookimpl
from hookline.config import ModelSettings
from hookline_upstream.engine import UpstreamEngine
from hookline_upstream.settings import UpstreamSettings


class Upstream:
    """``[model] engine = "upstream"``."""

    settings_model = UpstreamSettings

    def __init__(self, settings: UpstreamSettings) -> None:
        self._settings = settings

    @hookimpl
    def create_engine(self, model: ModelSettings) -> UpstreamEngine | None:
        """The engine, not yet connected."""
        return UpstreamEngine(model, self._settings) if model.engine == "upstream" else None
