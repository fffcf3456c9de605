"""The engines that come with Hookline, behind the same hook as anybody's."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hookline.config import ModelSettings, Settings, resolve_model
from hookline.engine import Engine
from hookline.engines.exllama_library import TITLES, Version, require
from hookline.errors import ConfigError
from hookline.hookspecs import hookimpl

if TYPE_CHECKING:
    from hookline.models import ModelFile

_EXLLAMA = ("cache", "gpu_split", "tensor_parallel", "draft_model", "draft_tokens", "ngram_draft")

OWN_SETTINGS = {
    "llamacpp": ("threads", "gpu_layers", "mmproj"),
    "exllamav2": (*_EXLLAMA, "loras"),
    "exllamav3": _EXLLAMA,
}
"""The settings in ``[model]`` that only some of these engines have."""


class BuiltinEngines:
    """Makes the llama.cpp engine for GGUF files, and the ExLlama engines for folders of
    safetensors. Libraries are imported when they are needed."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    @hookimpl
    def create_engine(self, model: ModelSettings) -> Engine | None:
        """An engine by its name, or for ``"auto"`` the one that reads the model's files. Raises
        StartError where that one cannot be used, if possible before anything is fetched."""
        if model.engine == "llamacpp":
            return self._llamacpp(model)
        for version in TITLES:
            if model.engine == version:
                return self._exllama(model, version)
        return self._by_files(model) if model.engine == "auto" else None

    def _by_files(self, model: ModelSettings) -> Engine:
        from hookline.engines.exllama_choice import choose_version, require_any
        from hookline.models import EITHER, find_model

        found = find_model(
            model.source,
            self._settings.data_dir,
            formats=EITHER,
            allow=lambda kind: require_any() if kind == "safetensors" else None,
        )
        if found.path.is_dir():
            return self._exllama(model, choose_version(found.path), found)
        return self._llamacpp(model, found)

    def _llamacpp(self, model: ModelSettings, found: ModelFile | None = None) -> Engine:
        from hookline.engines.llamacpp import LlamaCppEngine
        from hookline.models import find_model

        refuse_foreign(model, "llamacpp")
        found = found or find_model(model.source, self._settings.data_dir)
        return LlamaCppEngine(
            found.path,
            model_id=resolve_model(self._settings)[0],
            settings=model,
            max_queue=self._settings.server.max_queue,
            beside=found.mmproj,
        )

    def _exllama(
        self, model: ModelSettings, version: Version, found: ModelFile | None = None
    ) -> Engine:
        from hookline.engines.exllama import ExLlamaEngine
        from hookline.engines.exllama_folder import ModelFolder
        from hookline.models import SAFETENSORS, find_model

        require(version)
        refuse_foreign(model, version)
        data_dir = self._settings.data_dir
        found = found or find_model(model.source, data_dir, formats=SAFETENSORS)
        draft = model.draft_model and find_model(model.draft_model, data_dir, formats=SAFETENSORS)
        return ExLlamaEngine(
            version,
            ModelFolder.read(found.path),
            model_id=resolve_model(self._settings)[0],
            settings=model,
            max_queue=self._settings.server.max_queue,
            draft=ModelFolder.read(draft.path) if draft else None,
        )


def refuse_foreign(model: ModelSettings, engine: str) -> None:
    """Raises ConfigError for a setting that the engine does not have, since it would be ignored,
    and for two that exclude each other."""
    own = OWN_SETTINGS[engine]
    for name in dict.fromkeys(name for names in OWN_SETTINGS.values() for name in names):
        default = ModelSettings.model_fields[name].get_default(call_default_factory=True)
        if name not in own and getattr(model, name) != default:
            others = " and ".join(one for one, names in OWN_SETTINGS.items() if name in names)
            raise ConfigError(
                f"[model] {name} is a setting of {others}, and the model is served by {engine}: "
                "take it out"
            )
    if model.ngram_draft and model.draft_model is not None:
        raise ConfigError("[model] ngram_draft and draft_model exclude each other: take one out")
