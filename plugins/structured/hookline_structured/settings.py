"""``[plugin.structured]``."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field


class StructuredSettings(BaseModel):
    """Settings of the plugin."""

    model_config = ConfigDict(extra="forbid")

    engine: Literal["llguidance", "formatron"] = Field(
        "llguidance",
        description="What enforces JSON schemas. formatron takes the few that it gets right.",
    )
    whitespace: Literal["compact", "flexible"] = Field(
        "compact",
        description="'flexible' lets the model put single spaces and indented lines into JSON.",
    )
    compile_seconds: float = Field(
        1.5, gt=0, le=10, description="How long a schema may take to analyse before it is refused."
    )
    cache_size: int = Field(128, ge=1, description="Compiled constraints that are kept.")
