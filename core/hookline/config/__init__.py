"""Settings: their models, where their values come from, and what is wrong with them.

Command line flags win over ``HOOKLINE_…`` variables, those over ``hookline.toml``, that over the
defaults.
"""

from hookline.config.check import validate_plugin_table
from hookline.config.fields import MayBePath
from hookline.config.origins import Origin, Origins
from hookline.config.settings import (
    DEFAULT_MODEL,
    AuthSettings,
    CorsSettings,
    IsolationSettings,
    ModelSettings,
    QuotaSettings,
    ServerSettings,
    Settings,
    is_path,
    model_id,
    resolve_model,
)
from hookline.config.sources import LoadedSettings, find_config, load_settings
from hookline.config.template import commented_config

__all__ = [
    "DEFAULT_MODEL",
    "AuthSettings",
    "CorsSettings",
    "IsolationSettings",
    "LoadedSettings",
    "MayBePath",
    "ModelSettings",
    "Origin",
    "Origins",
    "QuotaSettings",
    "ServerSettings",
    "Settings",
    "commented_config",
    "find_config",
    "is_path",
    "load_settings",
    "model_id",
    "resolve_model",
    "validate_plugin_table",
]
