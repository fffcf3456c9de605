"""What can be set, in ``hookline.toml``, in the environment and on the command line.

A field's first example is what a fresh ``hookline.toml`` shows; without one it shows the default.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Literal

import platformdirs
from pydantic import BaseModel, ConfigDict, Field, PositiveInt, PrivateAttr
from pydantic_settings import (
    BaseSettings,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
)

from hookline.config.origins import Origins

DEFAULT_MODEL = "smollm2-135m"


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", validate_default=True)


class ServerSettings(_Table):
    """``[server]``: where to listen and what to bear."""

    host: str = Field("127.0.0.1", description="Address to listen on.")
    port: int = Field(1234, ge=0, le=65535, description="Port; 0 picks a free one.")
    max_queue: int = Field(64, ge=0, description="Requests that may wait for a place.")
    max_body_mb: float = Field(64, gt=0, description="Largest request body, in megabytes.")
    body_timeout: float = Field(60, gt=0, description="Seconds a body may take to arrive.")
    grace_seconds: float = Field(30, ge=0, description="How long running requests may end.")
    docs_need_key: bool = Field(True, description="Whether /docs and /openapi.json ask for a key.")


class ModelSettings(_Table):
    """``[model]``: which model answers, and how it runs."""

    source: str = Field(
        DEFAULT_MODEL, description="The embedded default, a path, or owner/repo[:file]."
    )
    engine: str = Field(
        "auto",
        description="auto, llamacpp, exllamav2, exllamav3, or an engine a plugin brings.",
    )
    context: PositiveInt = Field(8192, description="Tokens a request, prompt and answer.")
    parallel: PositiveInt = Field(4, le=64, description="Requests answered at once.")
    exact: bool = Field(True, description="Bit for bit the same alone and in a batch.")
    always_greedy: bool = Field(False, description="Ignore all sampling parameters.")
    threads: PositiveInt | None = Field(
        None, examples=[4], description="CPU threads; default: the cores."
    )
    gpu_layers: int = Field(0, ge=-1, description="Layers on the GPU; -1 is all.")
    chat_template: Path | None = Field(
        None, examples=["template.jinja"], description="A Jinja file instead of the model's own."
    )
    mmproj: Path | None = Field(
        None,
        examples=["mmproj.gguf"],
        description="Image projector; default: the one beside the model.",
    )
    cache: Literal["fp16", "q8", "q6", "q4"] = Field(
        "fp16", description="Precision of the KV memory (ExLlama)."
    )
    gpu_split: list[float] | None = Field(
        None,
        examples=[[20.0, 24.0]],
        description="Gigabytes of each GPU that may be used (ExLlama); default: what is free.",
    )
    tensor_parallel: bool = Field(
        False, description="Split every layer over the GPUs, not the layers between them (ExLlama)."
    )
    draft_model: str | None = Field(
        None,
        examples=["owner/small-model"],
        description="Small model of the same vocabulary that guesses ahead (ExLlama).",
    )
    draft_tokens: int = Field(
        4, ge=1, le=7, description="Tokens guessed ahead in a step (ExLlama)."
    )
    ngram_draft: bool = Field(
        False, description="Guess ahead from what the text repeats; not with draft_model (ExLlama)."
    )
    loras: list[Path] = Field(
        default=[],
        examples=[["adapters/tone"]],
        description="Folders of LoRA adapters, all active at once (ExLlamaV2).",
    )


class AuthSettings(_Table):
    """``[auth]``: who may ask."""

    require_api_key: bool = Field(False, description="Refuse requests without a valid key.")
    allow_no_key_on_network: bool = Field(
        False, description="Listen beyond loopback without keys; anybody who reaches it can use it."
    )


class CorsSettings(_Table):
    """``[cors]``: which web pages may ask from a browser."""

    allow_origins: list[str] = Field(
        default=[],
        examples=[["http://localhost:3000"]],
        description='Origins, or ["*"] for any. Empty: pages of other sites are refused.',
    )


class QuotaSettings(_Table):
    """``[quota]``: how much may be asked."""

    daily_prompts: int = Field(
        0, ge=0, examples=[100], description="Generation requests a local day; 0: no limit."
    )
    per_key: bool = Field(False, description="Count by key instead of over all keys.")


class IsolationSettings(_Table):
    """``[isolation]``: how much of a plugin's failures is borne."""

    hook_seconds: float = Field(
        30, gt=0, description="How long a plugin's async hook may take; then it is cancelled."
    )
    transform_seconds: float = Field(
        300, gt=0, description="The same for hooks that work long: transform, and services."
    )
    start_seconds: float = Field(
        300, gt=0, description="How long a plugin may take to start, and to stop."
    )
    blocking_seconds: float = Field(
        2,
        gt=0,
        description="A hook written with 'def' cannot be interrupted; longer counts as a failure.",
    )
    max_failures: int = Field(
        5, ge=1, description="Failures of a hook in a row after which its plugin is paused."
    )
    pause_seconds: float = Field(
        30, gt=0, description="How long a plugin is paused before one request tries it again."
    )


class Settings(BaseSettings):
    """All settings of one server.

    Tables of plugins stay raw here; each plugin's own model validates its table. Made in code, it
    takes nothing from the environment: `load_settings` reads the sources.
    """

    model_config = SettingsConfigDict(
        extra="forbid",
        validate_default=True,
        env_prefix="HOOKLINE_",
        env_nested_delimiter="__",
    )

    data_dir: Path = Field(
        default_factory=lambda: platformdirs.user_data_path("hookline"),
        description="Where keys, counts and documents are kept.",
    )
    plugins: list[str] | None = Field(
        None,
        examples=[["*"]],
        description="Plugins in the order of their calls. '*' stands for every built-in and every "
        "file of plugin_dir that is not named, '-name' takes one out; left out: '*'.",
    )
    plugin_dir: Path | None = Field(
        None,
        examples=["plugins"],
        description="Folder of plugins that are single files; left out: 'plugins' beside this "
        "file, where there is one.",
    )
    essential: list[str] = Field(
        default=[],
        examples=[["structured"]],
        description="Plugins without which the server must not start.",
    )
    log_level: Literal["debug", "info", "warning", "error"] = Field(
        "info", description="How much is logged: debug, info, warning or error."
    )
    log_requests: bool = Field(
        True, description="One line for each request, at level info; never contents or keys."
    )
    server: ServerSettings = ServerSettings()
    model: ModelSettings = ModelSettings()
    models: dict[str, ModelSettings] = Field(
        default={}, description="Further models by id, for --model or model.source to name."
    )
    auth: AuthSettings = AuthSettings()
    cors: CorsSettings = CorsSettings()
    quota: QuotaSettings = QuotaSettings()
    isolation: IsolationSettings = IsolationSettings()
    plugin: dict[str, dict[str, Any]] = Field(default={}, description="A table for each plugin.")
    _origins: Origins = PrivateAttr(default_factory=Origins)

    @property
    def origins(self) -> Origins:
        """Where the values came from; knows nothing of settings made in code."""
        return self._origins

    def came_from(self, origins: Origins) -> None:
        """Notes where the values came from."""
        self._origins = origins

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Only what the constructor is given."""
        return (init_settings,)


def is_path(source: str) -> bool:
    """Whether a model source names a file or folder, not the default model or one on the hub.

    It does when it begins with ``./``, ``../``, ``/`` or ``~``, ends with ``.gguf`` (and does not
    name a file of a hub repository, ``owner/repo:file.gguf``), or exists.
    """
    if source == DEFAULT_MODEL:
        return False
    if source.startswith(("./", "../", "/", "~")):
        return True
    return (source.endswith(".gguf") and ":" not in source) or Path(source).exists()


def model_id(source: str) -> str:
    """The id under which the model of a source is served.

    A file's name without ``.gguf`` (and without the number of a split file), a folder's name, or
    the source itself.
    """
    if not is_path(source):
        return source
    name = Path(source).expanduser().absolute().name.removesuffix(".gguf")
    return re.sub(r"-\d{5}-of-\d{5}$", "", name)


def resolve_model(settings: Settings) -> tuple[str, ModelSettings]:
    """Id and settings of the model that answers.

    Where ``model.source`` names one of ``models``, that table is the model, whole.
    """
    source = settings.model.source
    if source in settings.models:
        return source, settings.models[source]
    return model_id(source), settings.model
