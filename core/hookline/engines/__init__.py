"""The engines that come with Hookline, behind the same hook as anybody's."""

from __future__ import annotations

from hookline.config import ModelSettings, Settings, resolve_model
from hookline.engine import Engine
from hookline.hookspecs import hookimpl


class BuiltinEngines:
    """Makes the llama.cpp engine for GGUF files. Libraries are imported when they are needed."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    @hookimpl
    def create_engine(self, model: ModelSettings) -> Engine | None:
        """An engine for ``engine = "llamacpp"`` or ``"auto"``."""
        if model.engine not in ("auto", "llamacpp"):
            return None
        from hookline.engines.llamacpp import LlamaCppEngine
        from hookline.models import find_model

        found = find_model(model.source, self._settings.data_dir)
        return LlamaCppEngine(
            found.path,
            model_id=resolve_model(self._settings)[0],
            settings=model,
            max_queue=self._settings.server.max_queue,
            beside=found.mmproj,
        )
